"""Toolbox: the servers of one request, found and listed, and the catalog of their tools."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.events import Listed
from smg_node.core.generation.request import ChatPrompt, ToolChoice
from smg_node.core.generation.tool_serving import AskedBuiltin, AskedServer, ToolServing
from smg_node.core.json_cursor import quoted
from smg_node.core.request_context import RequestContext
from smg_node.mcp.catalog.catalog import (
    BuiltinListing,
    Catalog,
    ServerListing,
    build_catalog,
    listed_tool,
)
from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.failures import Failure
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.tool_servers import ResolvedServer, ToolServers
from smg_node.pipeline.tool_loop.loop_parts import LoopParts

SERVERS_AT_ONCE: Final = 8
"""Servers of one request that are asked for their tools at a time."""
FAILED_DEPENDENCY: Final = 424
_TELLS_LISTS: Final = ("responses",)
"""APIs whose answers say that a server cannot be listed; in others it is one of the parameters without effect."""
_SEARCHER: Final = ServerSpec(ServerDefinition("tool_search"), trust="trusted")
"""Who searches: this node itself."""
_OWN_SEARCH: Final = AskedBuiltin("tool_search", "tool_search", where="tools")


class Toolbox(msgspec.Struct, frozen=True):
    """What a request's model may call on this side.

    `listed` is what the client is told of servers, `ignored` names what of the request has no effect.
    """

    catalog: Catalog
    servers: Mapping[str, ResolvedServer]
    listed: tuple[Listed, ...] = ()
    ignored: tuple[str, ...] = ()


class _Asking:
    """One request's questions to its servers."""

    def __init__(
        self,
        servers: ToolServers | None,
        dialect: str,
        serving: ToolServing,
        context: RequestContext,
    ) -> None:
        self._servers = servers
        self._dialect = dialect
        self._headers = serving.headers
        self._context = context
        self._slots = asyncio.Semaphore(SERVERS_AT_ONCE)
        self.resolved: dict[str, ResolvedServer] = {}
        self.listings: dict[str, ServerListing] = {}
        self.told: dict[str, Listed] = {}

    async def all(self, asked: Sequence[AskedServer]) -> None:
        """Ask all of them; the first error of a request is raised when nothing is under way any more."""
        try:
            async with asyncio.TaskGroup() as group:
                for one in asked:
                    group.create_task(self._one(one), name="list tools")
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  # its own cause is what tells why

    async def _one(self, asked: AskedServer) -> None:
        assert self._servers is not None, "somebody knows servers"
        async with self._slots:
            server = await self._servers.resolve(asked, self._headers, self._context)
            self.resolved[asked.label] = server
            if asked.pinned is not None:
                self.listings[asked.label] = ServerListing(
                    asked, server.spec, asked.pinned, pinned=True
                )
                return
            tools = await self._servers.list_tools(server)
        if isinstance(tools, Failure):
            self._check(asked, server, tools)
            self.told[asked.label] = Listed(asked.label, error=tools.message)
            return
        listed = tuple(listed_tool(tool) for tool in tools.tools.values())
        self.listings[asked.label] = ServerListing(asked, server.spec, listed)

    def _check(self, asked: AskedServer, server: ResolvedServer, failure: Failure) -> None:
        """Refuse a request that cannot go on without a server's tools."""
        message = f"the tools of {asked.label!r} cannot be listed: {failure.message}"
        if server.spec.required:
            raise SmgError(
                ErrorKind.INVALID_REQUEST,
                message,
                where=asked.where,
                code="http_error",
                status=FAILED_DEPENDENCY,
            )
        if self._dialect == "messages":
            # Its answers have no way to say that a server is missing.
            raise SmgError(ErrorKind.UPSTREAM_FAILED, message, where=asked.where)


async def open_toolbox(
    parts: LoopParts,
    dialect: str,
    serving: ToolServing,
    prompt: ChatPrompt,
    context: RequestContext,
    model: str,
) -> Toolbox:
    """Return the tools of a request's servers, once all of them are listed or have failed to be; `model` is to call them.

    INVALID_REQUEST for what names a server that there is not, and for a built-in tool that is insisted on and has none.
    """
    servers = parts.servers()
    _check_labels(serving.servers)
    if servers is None and serving.servers:
        first = serving.servers[0]
        raise invalid(
            f"this node knows no servers of tools, and so not {first.label!r}: define it by `smg-admin mcp servers set`",
            first.where,
            code="unsupported_tool",
        )
    asking = _Asking(servers, dialect, serving, context)
    await asking.all(serving.servers)
    builtins = _builtins(parts, servers, serving, context, asking.resolved)
    ignored = _ignored(serving.builtins, builtins)
    if dialect not in _TELLS_LISTS:
        ignored += tuple(
            f"{one.where}.{one.label}" for one in serving.servers if one.label in asking.told
        )
    box = _box(asking, serving.servers, builtins, ignored, prompt)
    if await _too_many(parts, model, serving, prompt, box.catalog):
        asking.listings = {label: _deferring(one) for label, one in asking.listings.items()}
        box = _box(asking, serving.servers, [*builtins, _search(parts)], ignored, prompt)
    _check_choice(serving, prompt.choice, box.catalog, asking)
    return box


def _box(
    asking: _Asking,
    asked: Sequence[AskedServer],
    builtins: list[BuiltinListing],
    ignored: tuple[str, ...],
    prompt: ChatPrompt,
) -> Toolbox:
    listings = asking.listings
    ordered = [listings[one.label] for one in asked if one.label in listings]
    taken = {tool.name for tool in prompt.tools}
    searched = any(one.asked.kind == "tool_search" for one in builtins)
    catalog = build_catalog(ordered, builtins, taken, searched=searched)
    told: list[Listed] = []
    for one in asked:
        if one.pinned is not None or asking.resolved[one.label].spec.internal:
            continue
        failed = asking.told.get(one.label)
        told.append(failed or Listed(one.label, catalog.listed(one.label)))
    return Toolbox(catalog, asking.resolved, tuple(told), ignored)


async def _too_many(
    parts: LoopParts, model: str, serving: ToolServing, prompt: ChatPrompt, catalog: Catalog
) -> bool:
    """Whether the servers' tools are too long for a prompt, and some may be left out of it.

    What a request says itself stays so: that it searches for tools, or wants some of them only.
    """
    most = parts.options().defer_over_tokens
    if not most or parts.tokens is None or parts.search is None:
        return False
    if serving.choice is not None or prompt.choice.allowed is not None:
        return False
    if any(one.kind == "tool_search" for one in serving.builtins):
        return False
    shown = [tool for tool in catalog.offered.values() if tool.asked is not None]
    if not any(tool.spec.may_defer for tool in shown):
        return False
    return await parts.tokens.exceed(most, model, [tool.function for tool in shown])


def _deferring(listing: ServerListing) -> ServerListing:
    """Return the listing of a server all of whose tools are found by search, if its operator lets them be."""
    if not listing.spec.may_defer:
        return listing
    asked = msgspec.structs.replace(listing.asked, deferred=True, loaded_tools=())
    return msgspec.structs.replace(listing, asked=asked)


def _search(parts: LoopParts) -> BuiltinListing:
    """Return the search for tools where no request asks for one."""
    assert parts.search is not None, "nothing is deferred that nothing finds"
    return BuiltinListing(
        _OWN_SEARCH, "", _SEARCHER, "tool_search", parts.search.offered(_OWN_SEARCH)
    )


def _check_choice(
    serving: ToolServing, choice: ToolChoice, catalog: Catalog, asking: _Asking
) -> None:
    """Refuse a choice that insists on a tool which none of its servers has; one that is away may have it."""
    served = serving.choice
    if served is None or choice.mode != "required" or choice.allowed:
        return
    named = [one for one in served.tools if one.tool]
    if not named or len(named) < len(served.tools):
        return
    away = any(one.server in asking.told for one in named)
    if not away and not any(catalog.chosen(one) for one in named):
        raise invalid(f"there is no tool called {quoted(named[0].tool)}", choice.where)


def _check_labels(asked: Sequence[AskedServer]) -> None:
    labels: set[str] = set()
    for one in asked:
        if one.label in labels:
            raise invalid(f"the label {one.label!r} is given twice", one.where)
        labels.add(one.label)


def _builtins(
    parts: LoopParts,
    servers: ToolServers | None,
    serving: ToolServing,
    context: RequestContext,
    resolved: dict[str, ResolvedServer],
) -> list[BuiltinListing]:
    """Return the built-in tools that something does the work of; their servers are `resolved` as well."""
    found: list[BuiltinListing] = []
    kinds: set[str] = set()
    for asked in serving.builtins:
        if asked.kind in kinds:
            # One tool by two of its names.
            continue
        kinds.add(asked.kind)
        if asked.kind == "tool_search":
            if parts.search is not None:
                search = parts.search.offered(asked)
                found.append(BuiltinListing(asked, "", _SEARCHER, asked.spelled, search))
            continue
        function = None if parts.builtins is None else parts.builtins.offered(asked)
        if function is None or servers is None:
            continue
        place = servers.builtin(asked.kind, serving.headers, context)
        if place is None:
            continue
        server, tool = place
        label = _label(server, resolved)
        resolved[label] = server
        found.append(BuiltinListing(asked, label, server.spec, tool, function))
    return found


def _label(server: ResolvedServer, resolved: Mapping[str, ResolvedServer]) -> str:
    """Return a label for the server of a built-in tool that no other server of the request has."""
    label = server.label
    while label in resolved and resolved[label] != server:
        label += "_"
    return label


def _ignored(asked: Sequence[AskedBuiltin], found: Sequence[BuiltinListing]) -> tuple[str, ...]:
    """Return the names of built-in tools that nothing does the work of; INVALID_REQUEST where one is insisted on."""
    served = {one.asked.kind for one in found}
    left_out = [one for one in asked if one.kind not in served]
    for one in left_out:
        if one.insisted:
            why = (
                f"no server does the work of {one.spelled!r}: name its tool by"
                f" `smg-admin mcp servers set NAME --builtin {one.kind}=TOOL`"
            )
            raise invalid(why, one.where, code="unsupported_tool")
    return tuple(f"{one.where}.{one.spelled}" for one in left_out)
