"""Logs of a node: log lines, the access log, and the thread that writes them."""
