"""Shared state."""
