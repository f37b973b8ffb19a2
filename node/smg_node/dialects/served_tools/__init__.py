"""Served tools in public APIs: how a request asks for what this node runs, and forms of citations and searches; pure."""
