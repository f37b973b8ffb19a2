"""Served tools in public APIs: forms of what this node ran that several of them have: citations, searches for tools; pure."""
