"""Owning."""
