"""Cluster routes: members, settings, events, audit, metrics, shared state, explain."""
