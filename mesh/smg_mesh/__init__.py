"""Mesh: membership, shared state and limits of a cluster of equal peers."""
