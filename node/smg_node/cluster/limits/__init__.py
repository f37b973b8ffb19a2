"""Limits of the cluster: the service behind the limits API, and totals over all nodes."""
