"""Requests of the Interactions API: bodies, their steps, tools and generation settings."""
