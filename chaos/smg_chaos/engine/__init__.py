"""A simulated engine that is as odd as the real ones."""
