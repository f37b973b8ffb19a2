"""Metrics of a node: cells that are counted into, meters that scrapes read, and the reference page."""
