"""Turns: one response generated and committed, with its idempotency key, quota and record."""
