"""MCP commands: servers of tools for the whole cluster, their tools and calls, and a look at a server from here."""
