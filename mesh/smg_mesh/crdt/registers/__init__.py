"""Registers: ephemeral registers that each node writes about itself, and their bytes."""
