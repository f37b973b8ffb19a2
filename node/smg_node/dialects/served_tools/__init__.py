"""Served tools in public APIs: forms of citations and of searches for tools that several of them use; pure."""
