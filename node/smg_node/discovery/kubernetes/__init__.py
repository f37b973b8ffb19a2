"""Kubernetes: which pods or endpoints of a cluster are workers, kept current by lists and watches of its API server."""
