"""Faults of a game day, one kind a file: how each begins, how it ends, and when it has healed."""
