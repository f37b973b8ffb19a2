"""Jinja."""
