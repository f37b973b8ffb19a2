"""Trials: one plan lived through, from the first node to the last look."""
