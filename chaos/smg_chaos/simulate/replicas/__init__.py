"""Replicas: shared state in a simulated cluster, its driver, its workload, and its checkers."""
