"""Servers of tools over a pool of real connections: each defined for some tenants, and nothing else of a cluster."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from smg_node.core.errors import invalid
from smg_node.core.generation.tool_serving import AskedServer, BuiltinKind
from smg_node.core.request_context import RequestContext
from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.failures import Failure
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, Target
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.session.call_extras import CallExtras
from smg_node.mcp.tool_servers import PLAIN_CALL, CallOptions, ResolvedServer
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled


class PooledTools:
    """The defined servers, and the calls that were made; see `ToolServers`."""

    def __init__(self, pool: ServerPool, specs: Sequence[ServerSpec]) -> None:
        self._pool = pool
        self.specs = list(specs)
        self.calls: list[tuple[str, str, bytes, CallOptions]] = []

    async def resolve(
        self, asked: AskedServer, headers: Mapping[str, str], context: RequestContext
    ) -> ResolvedServer:
        for server in self.visible(headers, context):
            if server.label == asked.label:
                return server
        raise invalid("there is no such server", asked.where)

    def builtin(
        self, kind: BuiltinKind, headers: Mapping[str, str], context: RequestContext
    ) -> tuple[ResolvedServer, str] | None:
        return None

    def visible(
        self, headers: Mapping[str, str], context: RequestContext
    ) -> Sequence[ResolvedServer]:
        return [
            ResolvedServer(spec.name, spec, Target(spec.definition, tenant=context.tenant))
            for spec in sorted(self.specs, key=lambda spec: spec.name)
            if not spec.tenants or context.tenant in spec.tenants
        ]

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
        text = arguments.encode() if isinstance(arguments, str) else arguments
        self.calls.append((server.label, tool, text, options))
        return await self._pool.call(
            server.target,
            tool,
            text,
            trace=options.trace,
            answerer=options.answerer,
            total_s=options.total_s,
            extras=CallExtras(
                options.key,
                server.spec.idempotency,
                sending=options.sending,
                noted=options.noted,
                passed=options.passed,
            ),
        )


def spec(name: str, url: str, *, protocol: str = "auto", **said: Any) -> ServerSpec:
    """Return the definition of a server."""
    return ServerSpec(checked(ServerDefinition(name, url=url, protocol=protocol)), **said)


@asynccontextmanager
async def tools_of(
    *specs: ServerSpec, limits: McpLimits | None = None
) -> AsyncIterator[PooledTools]:
    """Yield these servers over a pool of their own."""
    async with pooled(limits) as pool:
        yield PooledTools(pool, specs)
