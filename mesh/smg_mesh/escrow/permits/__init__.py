"""Permits: concurrency limits as permits, split over the roster and lent between nodes."""
