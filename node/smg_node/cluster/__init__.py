"""Cluster: the mesh wired to the node: membership, settings, workers, limits, usage, reports."""
