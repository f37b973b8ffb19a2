"""Forwarding: requests that a data process passes on to its control process."""
