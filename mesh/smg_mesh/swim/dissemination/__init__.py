"""Dissemination."""
