"""Observability: journey log of recent requests, and gauges of engines, workers and placement."""
