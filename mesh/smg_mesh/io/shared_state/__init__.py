"""Shared state: the replicated state's driver: files on disk, hints on the wire, and upkeep."""
