"""Simulator: the engine itself on a clock that is an argument: scheduler, pacing, generations,
ends, faults.
"""
