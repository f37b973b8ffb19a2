"""Declared."""
