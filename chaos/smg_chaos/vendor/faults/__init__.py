"""Faults on purpose: their grammar, the requests they hit, and broken answers."""
