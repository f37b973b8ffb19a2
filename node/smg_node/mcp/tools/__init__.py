"""Tools as MCP servers list and answer them: definitions, mirrored arguments, results, their content; pure."""
