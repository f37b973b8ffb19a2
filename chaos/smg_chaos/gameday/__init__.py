"""Faults against real processes: a network of namespaces on one host, clusters in it, and what they did."""
