"""Memory store: history in memory: bounded, forgotten with the process, for tests and small nodes."""
