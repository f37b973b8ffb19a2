"""Core: nouns shared by every room: requests, events, answers, errors, ids, ports, plug-in
registry.
"""
