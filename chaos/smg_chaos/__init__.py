"""Chaos: simulated engines, faults on purpose, load, benchmarks and simulations for smg-node."""
