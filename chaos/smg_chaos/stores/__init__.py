"""Stores: real PostgreSQL and Redis servers, found on a bare machine and run as an unprivileged
user.
"""
