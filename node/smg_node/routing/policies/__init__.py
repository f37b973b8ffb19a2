"""Policies: the built-in routing policies, one file each."""
