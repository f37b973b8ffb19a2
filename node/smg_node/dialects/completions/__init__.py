"""Completions: text or ids in, more text out."""
