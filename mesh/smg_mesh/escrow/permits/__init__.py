"""Permits."""
