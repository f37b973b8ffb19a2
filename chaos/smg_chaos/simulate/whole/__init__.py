"""Whole cluster under traffic: membership, shared state, limits, routing and failover at once."""
