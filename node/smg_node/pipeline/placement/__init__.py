"""Placement: chooses a worker for each call, by filters and policy, and reserves it."""
