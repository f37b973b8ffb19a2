"""Tenant routes: API keys, limits and usage."""
