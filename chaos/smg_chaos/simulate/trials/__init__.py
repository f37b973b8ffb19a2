"""Trials: runs of one plan, from the first node's start to the final checks."""
