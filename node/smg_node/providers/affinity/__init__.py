"""Prompt-cache affinity: which account has which beginning of a prompt in its vendor's cache, and what that is worth. Pure."""
