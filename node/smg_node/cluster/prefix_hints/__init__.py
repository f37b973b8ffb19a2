"""Prefix hints."""
