"""Escrow: exact limits of the whole cluster: rights to spend, moved
between nodes, never copied. Pure.
"""
