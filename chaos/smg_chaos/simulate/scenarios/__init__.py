"""Scenarios with names: one kind of trouble in a cluster, and figures of its effect."""
