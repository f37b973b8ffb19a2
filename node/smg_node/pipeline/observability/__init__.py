"""Observability."""
