"""Doors to MCP servers: streamable HTTP, the older HTTP with SSE, and child processes; all I/O of this room."""
