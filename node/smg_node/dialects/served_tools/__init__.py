"""Served tools in public APIs: how a request asks for what this node runs, and forms of what came of it; pure."""
