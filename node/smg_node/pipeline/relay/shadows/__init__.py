"""Shadows: copies of relayed requests at another target, after their answers, and how the two compare."""
