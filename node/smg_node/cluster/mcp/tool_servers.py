"""Cluster tool servers: all that this process can call, for callers who may see them; see `mcp.tool_servers`.

Definitions may change at any time. A request that has a server resolved goes on with it as it was; once nobody defines
it any more, calls that are under way end, and none begins. Connections to what was taken away end with their calls.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from smg_node.cluster.mcp.client_tokens import ClientTokens
from smg_node.cluster.mcp.definitions import DefinedServer, Definitions
from smg_node.cluster.mcp.mcp_metrics import McpMetrics
from smg_node.cluster.mcp.server_targets import Caller, ServerTargets, may_see, not_found
from smg_node.core.errors import SmgError
from smg_node.core.generation.tool_serving import AskedServer, BuiltinKind
from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.failures import Failure, refused
from smg_node.mcp.pool import ServerPool, Target
from smg_node.mcp.session.call_extras import CallExtras
from smg_node.mcp.tool_servers import PLAIN_CALL, CallOptions, ResolvedServer
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult

if TYPE_CHECKING:
    # Given by the process that has limits and an account of use.
    from smg_node.cluster.mcp.run_accounts import RunAccounts

_AUTH: Final = 401


class OpenPool(Protocol):
    """Port to the pool of connections, which is opened at its first use."""

    async def __call__(self) -> ServerPool | Failure:
        """Return the pool, or that there is none now."""
        ...


class ClusterToolServers:
    """Servers of one process. `read` returns the definitions as they count now."""

    def __init__(
        self,
        read: Callable[[], Definitions],
        targets: ServerTargets,
        tokens: ClientTokens,
        pool: OpenPool,
        metrics: McpMetrics,
        clock: Clock,
    ) -> None:
        self._read = read
        self._targets = targets
        self._tokens = tokens
        self._pool = pool
        self._metrics = metrics
        self._clock = clock
        self.accounts: RunAccounts | None = None
        """What runs are charged to and counted in, where there is anything."""
        self._used: dict[str, tuple[ServerDefinition, str]] = {}
        """Defined servers that were resolved: as they were defined, and the digest that they are called by."""

    def gone(self) -> Collection[str]:
        """Return digests of definitions that were used and count no more; each is returned once."""
        servers = self._read().servers
        changed = {
            name: digest
            for name, (definition, digest) in self._used.items()
            if name not in servers or servers[name].spec.definition != definition
        }
        for name in changed:
            del self._used[name]
        self._metrics.forget(changed.keys())
        return set(changed.values()) - {digest for _, digest in self._used.values()}

    # ── Which servers there are ──────────────────────────────────────────────

    async def resolve(
        self, asked: AskedServer, headers: Mapping[str, str], context: RequestContext
    ) -> ResolvedServer:
        """See `ToolServers`: INVALID_REQUEST `mcp_server_not_found` for what this caller cannot see."""
        caller = Caller(context, headers, asked)
        if asked.url:
            return self._targets.given(asked, caller)
        name = asked.definition or asked.label
        found = self._read().servers.get(name)
        if found is None or not may_see(found.spec, context):
            raise not_found(name, asked.where)
        return self._defined(found, caller, asked.label)

    def builtin(
        self, kind: BuiltinKind, headers: Mapping[str, str], context: RequestContext
    ) -> tuple[ResolvedServer, str] | None:
        """See `ToolServers`: the first by name that can be used."""
        for found in self._seen(context):
            tool = found.spec.builtin.get(kind)
            if tool is not None and (resolved := self._usable(found, headers, context)) is not None:
                return resolved, tool
        return None

    def visible(
        self, headers: Mapping[str, str], context: RequestContext
    ) -> Sequence[ResolvedServer]:
        """See `ToolServers`: without those that want an authorization of each request, or that cannot be used here."""
        found = (self._usable(one, headers, context) for one in self._seen(context))
        return [one for one in found if one is not None]

    def for_operator(
        self, name: str, context: RequestContext, authorization: str = ""
    ) -> ResolvedServer:
        """Return a defined server, whoever may see it; NOT_FOUND is the caller's to say: KeyError for an unknown name."""
        asked = AskedServer(name, authorization=authorization, where="authorization")
        return self._defined(self._read().servers[name], Caller(context, asked=asked))

    # ── What they do ─────────────────────────────────────────────────────────

    async def list_tools(
        self, server: ResolvedServer, *, fresh: bool = False
    ) -> ToolList | Failure:
        """See `ToolServers`."""
        listed = await self._listed(server, fresh=fresh)
        tools = listed if isinstance(listed, Failure) else frozenset(listed.tools)
        self._metrics.listed(_label(server), tools)
        return listed

    async def call(
        self,
        server: ResolvedServer,
        tool: str,
        arguments: str | bytes,
        context: RequestContext,
        options: CallOptions = PLAIN_CALL,
    ) -> CallResult | Failure:
        """See `ToolServers`. A rule's `timeout_s` bounds the time."""
        began_s = self._clock.monotonic_s()
        try:
            outcome = await self._charged(server, tool, arguments, context, options)
        except asyncio.CancelledError:
            self._metrics.cut(_label(server), tool, self._clock.monotonic_s() - began_s)
            raise
        self._metrics.called(_label(server), tool, outcome, self._clock.monotonic_s() - began_s)
        return outcome

    # ── Below ────────────────────────────────────────────────────────────────

    async def _charged(
        self,
        server: ResolvedServer,
        tool: str,
        arguments: str | bytes,
        context: RequestContext,
        options: CallOptions,
    ) -> CallResult | Failure:
        if self.accounts is None:
            return await self._call(server, tool, arguments, options)

        def call(told: CallOptions) -> Awaitable[CallResult | Failure]:
            return self._call(server, tool, arguments, told)

        return await self.accounts.run(server, tool, context, options, call)

    def _defined(self, found: DefinedServer, caller: Caller, label: str = "") -> ResolvedServer:
        resolved = self._targets.defined(found, caller, label)
        self._used[found.spec.name] = (found.spec.definition, resolved.target.key[0])
        return resolved

    def _seen(self, context: RequestContext) -> Sequence[DefinedServer]:
        return [one for one in self._read().servers.values() if may_see(one.spec, context)]

    def _usable(
        self, found: DefinedServer, headers: Mapping[str, str], context: RequestContext
    ) -> ResolvedServer | None:
        try:
            return self._defined(found, Caller(context, headers))
        except SmgError:
            return None

    async def _listed(self, server: ResolvedServer, *, fresh: bool) -> ToolList | Failure:
        target = await self._entering(server)
        if isinstance(target, Failure):
            return target
        pool = await self._pool()
        if isinstance(pool, Failure):
            return pool
        listed = await pool.list_tools(target, fresh=fresh)
        if self._is_out(server, target, listed):
            again = await self._entering(server)
            return (
                again if isinstance(again, Failure) else await pool.list_tools(again, fresh=fresh)
            )
        return listed

    async def _call(
        self, server: ResolvedServer, tool: str, arguments: str | bytes, options: CallOptions
    ) -> CallResult | Failure:
        target = await self._entering(server)
        if isinstance(target, Failure):
            return target
        pool = await self._pool()
        if isinstance(pool, Failure):
            return pool
        # Of a rule, 0 is no limit; of a request, that its time is over.
        rule_s = server.spec.rule(tool).timeout_s or None
        total_s = min((one for one in (options.total_s, rule_s) if one is not None), default=None)
        extras = CallExtras(
            options.key,
            server.spec.idempotency,
            sending=options.sending,
            noted=options.noted,
            passed=options.passed,
        )

        async def call(at: Target) -> CallResult | Failure:
            return await pool.call(
                at,
                tool,
                arguments,
                trace=options.trace,
                answerer=options.answerer,
                total_s=total_s,
                extras=extras,
            )

        outcome = await call(target)
        if self._is_out(server, target, outcome):
            # Nobody was let in, so nothing has run.
            again = await self._entering(server)
            return again if isinstance(again, Failure) else await call(again)
        return outcome

    async def _entering(self, server: ResolvedServer) -> Target | Failure:
        """Return the target with what lets it in by now; a failure where nobody defines the server any more."""
        if not server.defined:
            return server.target
        name = server.spec.name
        found = self._read().servers.get(name)
        if found is None:
            return refused(f"the server of tools {name} was taken away")
        issuer = server.spec.issuer
        if issuer is None:
            return server.target
        if found.spec.issuer != issuer or found.spec.definition != server.spec.definition:
            return refused(f"the server of tools {name} was changed meanwhile")
        try:
            secret = self._targets.secret(found, "client_secret")
        except SmgError as error:
            return refused(error.message)
        token = await self._tokens.token(issuer, secret)
        if isinstance(token, Failure):
            return token
        credential = self._targets.renewed(found, server.target.credential, token)
        return replace(server.target, credential=credential)

    def _is_out(
        self, server: ResolvedServer, target: Target, outcome: ToolList | CallResult | Failure
    ) -> bool:
        """Whether a token of client credentials was refused; it is forgotten, and may be tried anew once."""
        issuer = server.spec.issuer
        if issuer is None or not isinstance(outcome, Failure) or outcome.status != _AUTH:
            return False
        found = self._read().servers.get(server.spec.name)
        token = dict(target.credential.headers).get("authorization", "").removeprefix("Bearer ")
        if found is None or not token:
            return False
        try:
            secret = self._targets.secret(found, "client_secret")
        except SmgError:
            # What made the token cannot be read any more: there will be no other.
            return False
        self._tokens.forget(issuer, secret, token)
        return True


def _label(server: ResolvedServer) -> str:
    """Return the server's name in metrics, "" for one that a client gave."""
    return server.spec.name if server.defined else ""
