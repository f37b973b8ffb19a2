"""Responses and Conversations: items in, items out, and every step of an answer as an event."""
