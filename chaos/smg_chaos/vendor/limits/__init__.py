"""Limits and costs: buckets of rates, the prompt cache, and the bill."""
