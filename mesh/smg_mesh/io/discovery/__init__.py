"""Discovery."""
