"""Wiring: builds and connects the parts of each process of a node."""
