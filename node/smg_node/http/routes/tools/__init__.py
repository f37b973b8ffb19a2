"""Tool routes: the node's own MCP server."""
