"""History in memory: bounded, forgotten with the process, for tests and for nodes that need none."""
