"""Clients of the limits gameday: a process that sends requests at given rates and records every
answer.
"""
