"""Trials of limits in long windows: single clients, bursts, pacing, and two nodes at once.

Everything that clients and operators are told is compared with what happened (`claims`).
"""
