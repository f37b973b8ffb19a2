"""Servers that are really spoken with: a pool's connections as the port that loops use."""

from collections.abc import Mapping, Sequence
from typing import Any

from smg_node.core.errors import invalid
from smg_node.core.generation.tool_serving import AskedServer, BuiltinKind
from smg_node.core.request_context import RequestContext
from smg_node.mcp.failures import Failure
from smg_node.mcp.pool import ServerPool, Target
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.tool_servers import PLAIN_CALL, CallOptions, ResolvedServer
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult


class PoolServers:
    """Servers by label, over a pool; see `ToolServers`. `outcomes` are what came of calls."""

    def __init__(self, pool: ServerPool, targets: Mapping[str, Target], **fields: Any) -> None:
        self._pool = pool
        self._servers = {
            label: ResolvedServer(label, ServerSpec(target.definition, **fields), target)
            for label, target in targets.items()
        }
        self.outcomes: list[CallResult | Failure] = []

    async def resolve(
        self, asked: AskedServer, headers: Mapping[str, str], context: RequestContext
    ) -> ResolvedServer:
        if asked.label not in self._servers:
            raise invalid(f"there is no server {asked.label!r}", asked.where)
        return self._servers[asked.label]

    def builtin(
        self, kind: BuiltinKind, headers: Mapping[str, str], context: RequestContext
    ) -> tuple[ResolvedServer, str] | None:
        return None

    def visible(
        self, headers: Mapping[str, str], context: RequestContext
    ) -> Sequence[ResolvedServer]:
        return list(self._servers.values())

    async def list_tools(
        self, server: ResolvedServer, *, fresh: bool = False
    ) -> ToolList | Failure:
        return await self._pool.list_tools(server.target, fresh=fresh)

    async def call(
        self,
        server: ResolvedServer,
        tool: str,
        arguments: str | bytes,
        context: RequestContext,
        options: CallOptions = PLAIN_CALL,
    ) -> CallResult | Failure:
        outcome = await self._pool.call(
            server.target,
            tool,
            arguments,
            trace=options.trace,
            answerer=options.answerer,
            total_s=options.total_s,
        )
        self.outcomes.append(outcome)
        return outcome
