"""MCP servers in the cluster: their definitions, who may use them, and calls of their tools."""
