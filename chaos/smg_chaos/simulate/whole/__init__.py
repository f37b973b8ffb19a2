"""Everything at once: membership, shared state, limits, routing and failover, under traffic."""
