"""Memory store: bounded history in memory, for tests and nodes whose history need not last."""
