"""Simulate: a whole cluster in one process: the product's cores, a virtual clock and one seed."""
