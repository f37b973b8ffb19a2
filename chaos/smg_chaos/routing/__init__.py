"""Routing simulation: gateways and engines on virtual time, to compare routing policies on large
models.
"""
