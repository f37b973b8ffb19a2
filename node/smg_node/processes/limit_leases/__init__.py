"""Limit leases."""
