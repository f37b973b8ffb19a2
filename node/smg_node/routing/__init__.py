"""Routing: policies that choose a worker for a request, and their ground: costs, pool, queue,
prefix index.
"""
