"""Tool actions: the functions behind the routes about servers of tools and sources of workers, loaded when asked for."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.middleware.middleware import Action

if TYPE_CHECKING:
    from smg_node.http.routes.cluster.discovery import DiscoveryRoutes
    from smg_node.http.routes.cluster.tool_approvals import ToolApprovalRoutes
    from smg_node.http.routes.cluster.tool_servers import ToolServerRoutes
    from smg_node.http.routes.tools.mcp_server import McpServerRoutes


def tool_server_actions(
    parts: HttpParts, bodies: BodyReader, pulse: KeepaliveTimer
) -> Mapping[str, Action]:
    """Return the action of every name of these routes in the route table."""

    @cache
    def servers() -> "ToolServerRoutes":
        from smg_node.http.routes.cluster.tool_servers import ToolServerRoutes

        assert parts.tool_servers is not None, "the process that has this route has the service"
        return ToolServerRoutes(parts, parts.tool_servers(), bodies)

    @cache
    def approvals() -> "ToolApprovalRoutes":
        from smg_node.http.routes.cluster.tool_approvals import ToolApprovalRoutes

        assert parts.tool_approvals is not None, "the process that has this route has the service"
        return ToolApprovalRoutes(parts, parts.tool_approvals(), bodies)

    @cache
    def discovery() -> "DiscoveryRoutes":
        from smg_node.http.routes.cluster.discovery import DiscoveryRoutes

        assert parts.discovery is not None, "the process that has this route has the service"
        return DiscoveryRoutes(parts, parts.discovery(), bodies)

    @cache
    def served() -> "McpServerRoutes":
        from smg_node.dialects.thought_seals import PlainVault
        from smg_node.http.routes.tools.mcp_server import McpServerRoutes

        return McpServerRoutes(parts, bodies, pulse, parts.vault or PlainVault())

    return {
        "serve_mcp": lambda request: served().serve(request),
        "mcp_servers": lambda request: servers().servers(request),
        "mcp_server": lambda request: servers().server(request),
        "create_mcp_server": lambda request: servers().create(request),
        "put_mcp_server": lambda request: servers().put(request),
        "remove_mcp_server": lambda request: servers().remove(request),
        "mcp_tools": lambda request: servers().tools(request),
        "call_mcp_tool": lambda request: servers().call(request),
        "discovery": lambda request: discovery().discovery(request),
        "define_source": lambda request: discovery().define(request),
        "remove_source": lambda request: discovery().remove(request),
        "tool_approvals": lambda request: approvals().waiting(request),
        "tool_approval": lambda request: approvals().one(request),
        "answer_tool_approval": lambda request: approvals().answer(request),
    }
