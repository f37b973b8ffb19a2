"""Replication."""
