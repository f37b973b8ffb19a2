"""Serving side of MCP: requests of clients in both eras read and checked, tools offered, answers written; pure."""
