"""Hostings: where each API is served, under which paths, with which credentials and models."""
