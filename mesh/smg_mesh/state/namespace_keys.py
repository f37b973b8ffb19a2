"""Namespace keys: how those begin of what is kept in the namespace `providers` and is no provider. Pure."""

from typing import Final

TOOL_SERVER: Final = "mcp/servers/"
"""Of a server of tools, whose secrets are kept, sealed and passed on as those of providers are; its name follows."""
