"""Wire forms of MCP: JSON-RPC messages, request headers, server-sent events, lines, HTTP answers; pure."""
