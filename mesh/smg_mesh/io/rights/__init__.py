"""Rights."""
