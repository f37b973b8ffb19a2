"""Served output: items and events of tools that this node runs."""
