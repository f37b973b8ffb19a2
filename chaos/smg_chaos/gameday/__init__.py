"""Gameday: faults against real processes in network namespaces on one host, and how clusters behave
under them.
"""
