"""Ports: protocols through which the routes call the node, with the views that they return."""
