"""Turns: one response while it is generated and committed, with its idempotency key, quota and
stored record.
"""
