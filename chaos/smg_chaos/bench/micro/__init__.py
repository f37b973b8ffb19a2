"""Micro."""
