"""State: typed views of what nodes share: workers, limits, keys, settings,
load, verdicts, audit log. Pure.
"""
