"""Rates of accounts: buckets as vendors tell of them, and how processes and nodes spend them together."""
