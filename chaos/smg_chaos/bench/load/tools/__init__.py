"""Runs of tools: requests whose model calls a tool, and streams beside them."""
