"""Opaque state in the messages of Chat Completions."""
