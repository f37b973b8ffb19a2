"""Hostile datagrams: thrown at the door of a node, and, with its key, at what is behind."""
