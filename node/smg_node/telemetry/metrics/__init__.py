"""Metrics of a node: cells that are counted into, meters that scrapes read, reference page."""
