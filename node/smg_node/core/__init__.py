"""Nouns shared by every room: requests, events, answers, errors, ids and ports."""
