"""Simulated engine: serves the gRPC contracts and HTTP APIs of real inference engines, with their
quirks.
"""
