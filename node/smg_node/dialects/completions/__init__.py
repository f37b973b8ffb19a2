"""Completions: reader and presenter of the API: text or ids in, more text out."""
