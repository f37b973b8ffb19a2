"""Worker routes: list, add, change, drain and remove workers of the cluster."""
