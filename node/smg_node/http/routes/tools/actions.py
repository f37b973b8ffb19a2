"""Tool actions: the functions behind the routes of tools; what they need is loaded with the first request for them."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.middleware.middleware import Action

if TYPE_CHECKING:
    from smg_node.http.routes.tools.mcp_server import McpServerRoutes


def tool_actions(
    parts: HttpParts, bodies: BodyReader, pulse: KeepaliveTimer
) -> Mapping[str, Action]:
    """Return the actions of the node's own MCP server."""

    @cache
    def mcp_server() -> "McpServerRoutes":
        from smg_node.dialects.thought_seals import PlainVault
        from smg_node.http.routes.tools.mcp_server import McpServerRoutes

        return McpServerRoutes(parts, bodies, pulse, parts.vault or PlainVault())

    return {"serve_mcp": lambda request: mcp_server().serve(request)}
