"""Dialects: the public APIs, each a reader (body to request) and a presenter (events to frames)."""
