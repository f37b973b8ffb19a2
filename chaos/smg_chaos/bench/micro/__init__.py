"""Micro-benchmarks: CPU time of single parts of a node, in one process and without a network."""
