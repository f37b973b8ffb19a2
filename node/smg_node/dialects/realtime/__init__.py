"""Realtime API: sessions over a socket, as a machine of values: session object, items, answers, events."""
