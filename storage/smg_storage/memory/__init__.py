"""Memory store: history in memory: bounded, gone with the process, for tests and small nodes."""
