"""Relay: passes requests through to HTTP workers, with placement, limits and retries."""
