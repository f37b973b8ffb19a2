"""Trials of limits in long windows: single clients, bursts, pacing and two nodes, with everything
that clients were told compared with what happened.
"""
