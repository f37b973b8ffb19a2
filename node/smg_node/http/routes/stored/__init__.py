"""Stored routes: responses and conversations: created, retrieved, followed, deleted."""
