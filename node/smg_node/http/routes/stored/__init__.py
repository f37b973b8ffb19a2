"""Stored."""
