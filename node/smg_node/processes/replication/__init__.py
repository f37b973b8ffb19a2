"""Replication of shared state from the control process to data processes, and of their reports
back.
"""
