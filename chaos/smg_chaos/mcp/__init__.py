"""MCP servers on purpose: both eras, every transport, faults, and a count of what was really run."""
