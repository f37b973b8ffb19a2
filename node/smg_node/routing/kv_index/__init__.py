"""KV index: prefix-cache index of blocks: the workers and ranks that hold them, from KV events,
hints and assumptions.
"""
