"""Public APIs as pairs of a reader (body to request) and a presenter (events to frames)."""
