"""Traces: W3C trace context, sampling, and the scope of the request that a task works for."""
