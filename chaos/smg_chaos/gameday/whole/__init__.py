"""Whole game day: a cluster in daily use, every kind of fault by seed, and figures with targets."""
