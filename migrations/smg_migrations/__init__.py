"""Migrations of the history tables: their shape, version by version."""
