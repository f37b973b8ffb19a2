"""Turns."""
