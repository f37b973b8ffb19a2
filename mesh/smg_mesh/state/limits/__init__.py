"""Limits: rules as they are written, stored, and matched with requests."""
