"""SWIM membership: which nodes are alive: SWIM with Lifeguard and
extensions, without any I/O. Pure.
"""
