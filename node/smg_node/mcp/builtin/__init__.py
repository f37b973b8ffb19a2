"""Built-in tools done by any server: what models are offered, what servers are given, how their results are read; pure."""
