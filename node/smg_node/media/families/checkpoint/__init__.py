"""Checkpoint: what all families are made of: the numbers of its files, its tokens, and tensors for engines; pure."""
