"""MCP: client of Model Context Protocol servers, whose tools run for models; imported only where a server is configured."""
