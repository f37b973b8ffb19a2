"""One node in several processes: one that controls, and those that serve."""
