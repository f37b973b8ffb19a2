"""Spool."""
