"""Load: load model of a worker and of its data-parallel ranks, in seconds. Pure."""
