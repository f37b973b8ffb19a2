"""Errors of vendors: their reasons, and each vendor's own envelope and headers."""
