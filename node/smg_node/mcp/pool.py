"""Pool of connections to MCP servers: one per server, credential and tenant, with limits and an end for idle ones.

A connection is made at the first use. A request whose connection breaks loses only itself, because by HTTP each has an
answer of its own. What runs beside requests (streams, notices of cancelled calls, the look for idle connections) runs in
the pool's group of tasks, for as long as it is entered; nothing of it can fail the pool.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, Final, TypeAlias, TypeVar

from smg_node.engines.http.aiohttp_client import trusting
from smg_node.mcp.connection import ServerConnection
from smg_node.mcp.connection_parts import ConnectionParts, refuse_all
from smg_node.mcp.definition import NO_CREDENTIAL, Credential, ServerDefinition
from smg_node.mcp.failures import Failure, refused
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.session.call_extras import NO_EXTRAS, CallExtras
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.session.session import RequestIds
from smg_node.mcp.session.session_record import SessionRecords
from smg_node.mcp.session.shared_session import SharedSession
from smg_node.mcp.session.tool_call import Answerer, declined
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult

WAITING_PER_SLOT: Final = 32
"""So many calls may wait for each that may be open, before further ones are refused."""
_LOOKS_MAX_S: Final = 30.0
_LOOKS_PER_IDLE: Final = 4
_LAST_LOOK_S: Final = 0.01
"""So long it is waited at least before a record is looked at again."""
_CLOSED: Final = "the node ends its connections"
_Outcome = TypeVar("_Outcome")
_log: Final = logging.getLogger("smg_node.mcp")


TargetKey: TypeAlias = tuple[str, str, str, str, bool]


@dataclass(frozen=True, slots=True)
class Target:
    """One server as one tenant uses it; nothing is shared between two of these.

    `scope` keeps sessions of one tenant apart, "" for one that is shared. `lasting`: its connection outlives a call.
    `guarded`: a client gave the URL, and only addresses that the pool allows are connected with. `alone`: no other
    process ever comes with this scope.
    """

    definition: ServerDefinition
    credential: Credential = NO_CREDENTIAL
    tenant: str = ""
    scope: str = ""
    lasting: bool = True
    guarded: bool = False
    alone: bool = False
    key: "TargetKey" = field(init=False, compare=False)
    """By which connections are kept: digests of definition and credential, tenant, scope, and whether it is guarded."""

    def __post_init__(self) -> None:
        digests = (self.definition.digest, self.credential.digest)
        object.__setattr__(self, "key", (*digests, self.tenant, self.scope, self.guarded))


class _Slots:
    """How many calls to one server are open, and how many wait."""

    def __init__(self, open_max: int) -> None:
        self.free = asyncio.Semaphore(open_max)
        self.users = 0
        self.users_max = open_max * (1 + WAITING_PER_SLOT)


class _Kept:
    """One connection of the pool, and how it is used."""

    def __init__(self, connection: ServerConnection, now_s: float) -> None:
        self.connection = connection
        self.users = 0
        self.used_s = now_s
        self.is_let_go = False
        """It is closed once nobody uses it."""


class ServerPool:
    """Connections by server, credential and tenant. Made by `server_pool`."""

    def __init__(self, parts: ConnectionParts) -> None:
        self._parts = parts
        self._kept: dict[TargetKey, _Kept] = {}
        self._slots: dict[str, _Slots] = {}
        self._open: set[ServerConnection] = set()
        """All connections that are not closed yet: kept, let go, of one call, or being closed."""
        self._is_closed = False
        self._passing = 0
        """Connections that last for one call."""

    def __len__(self) -> int:
        """Return how many connections there are."""
        return len(self._kept)

    async def open(self, target: Target) -> Opened | Failure:
        """Return how a server is opened, after opening it if need be."""
        return await self._with(target, lambda connection: connection.open())

    async def list_tools(self, target: Target, *, fresh: bool = False) -> ToolList | Failure:
        """Return a server's tools; see `ServerConnection.list_tools`."""
        return await self._with(target, lambda connection: connection.list_tools(fresh=fresh))

    async def call(
        self,
        target: Target,
        tool: str,
        arguments: str | bytes,
        *,
        trace: Mapping[str, str] | None = None,
        answerer: Answerer = declined,
        total_s: float | None = None,
        extras: CallExtras = NO_EXTRAS,
    ) -> CallResult | Failure:
        """Call a tool; see `ServerConnection.call`. Waits where the server has as many calls open as it may."""
        most_s = self._parts.limits.call_total_s
        until_s = _now_s() + (most_s if total_s is None else min(total_s, most_s))
        definition = target.definition
        digest = target.key[0]
        slots = self._slots.get(digest)
        if slots is None:
            slots = self._slots[digest] = _Slots(definition.concurrency)
        if slots.users >= slots.users_max:
            return refused(f"{definition.name} has too many calls waiting ({_limit(definition)})")
        slots.users += 1
        try:
            if not await _taken(slots.free, until_s):
                return refused(f"{definition.name} has no free call ({_limit(definition)})")
            try:

                def work(connection: ServerConnection) -> Awaitable[CallResult | Failure]:
                    return connection.call(
                        tool,
                        arguments,
                        trace=trace,
                        answerer=answerer,
                        total_s=max(0.0, until_s - _now_s()),
                        extras=extras,
                    )

                if not target.lasting:
                    return await self._once(target, work)
                return await self._with(target, work)
            finally:
                slots.free.release()
        finally:
            slots.users -= 1
            if not slots.users:
                self._slots.pop(digest, None)

    def close_idle(self) -> float:
        """Close the connections that nobody has used for too long; return in how many seconds to look again."""
        idle_s = self._parts.limits.session_idle_s
        now_s = _now_s()
        for kept in self._kept.values():
            # Whoever sees now that another uses the session will not end it when it is over.
            kept.connection.channel.look()
        idle = [
            key
            for key, kept in self._kept.items()
            if not kept.users
            and now_s - kept.used_s >= idle_s
            # A record ends by the wall clock, and who let go of its session before would never end that.
            and not kept.connection.channel.lingers()
        ]
        for key in idle:
            # All are taken out before any is closed, which takes time: whoever needs a server gets a new connection.
            self._end(self._kept.pop(key).connection)
        ages = [now_s - kept.used_s for kept in self._kept.values()]
        return max(0.0, min(idle_s - max(ages, default=0.0), idle_s / _LOOKS_PER_IDLE))

    def let_go(self, digests: Collection[str]) -> None:
        """Close the connections to definitions of these digests, each once its calls have ended."""
        for key, kept in list(self._kept.items()):
            if key[0] in digests:
                kept.is_let_go = True
                # Taken out: whoever wants the server again gets a new connection.
                del self._kept[key]
                kept.connection.channel.deafen()
                if not kept.users:
                    self._end_later(kept.connection)

    async def close(self) -> None:
        """Close all connections, also those that have calls under way, which are lost; no call begins any more."""
        self._is_closed = True
        self._kept.clear()
        async with asyncio.TaskGroup() as group:
            for connection in tuple(self._open):
                group.create_task(connection.close(leaving=True))

    async def _with(
        self, target: Target, work: Callable[[ServerConnection], Awaitable[_Outcome]]
    ) -> _Outcome | Failure:
        if self._is_closed:
            return refused(_CLOSED)
        kept = self._kept.get(target.key)
        if kept is None:
            if len(self._kept) >= self._parts.limits.connections_max and not self._make_room():
                most = self._parts.limits.connections_max
                return refused(f"{most} servers are in use at once, and no more can be")
            kept = self._kept[target.key] = _Kept(self._connection(target), _now_s())
        kept.connection.renew(target.credential)
        kept.users += 1
        try:
            return await work(kept.connection)
        finally:
            kept.users -= 1
            kept.used_s = _now_s()
            kept.connection.channel.used()
            if kept.is_let_go and not kept.users:
                self._end_later(kept.connection)

    async def _once(
        self, target: Target, work: Callable[[ServerConnection], Awaitable[_Outcome]]
    ) -> _Outcome | Failure:
        """Do work in a connection that nobody else uses, and that ends with it."""
        if self._is_closed:
            return refused(_CLOSED)
        if self._passing >= self._parts.limits.connections_max:
            return refused(f"{self._passing} servers are in use at once, and no more can be")
        self._passing += 1
        connection = self._connection(target)
        try:
            return await work(connection)
        finally:
            self._passing -= 1
            self._end(connection)

    def _end(self, connection: ServerConnection) -> None:
        """Close a connection while others go on; the pool ends no sooner, and closes what is open then."""

        async def close() -> None:
            try:
                await connection.close()
            finally:
                self._open.discard(connection)

        if not self._is_closed:
            self._parts.spawn(close())

    def _end_later(self, connection: ServerConnection) -> None:
        """Close a connection once no other process can have calls in its session any more."""

        async def end() -> None:
            # Clocks differ by a moment: a record that still counts then would leave the session to nobody.
            left_s = connection.channel.lasts_s()
            while left_s:
                await asyncio.sleep(max(left_s, _LAST_LOOK_S))
                left_s = connection.channel.lasts_s()
            self._end(connection)

        if not connection.channel.lasts_s():
            self._end(connection)
        elif not self._is_closed:
            self._parts.spawn(end())

    def _connection(self, target: Target) -> ServerConnection:
        records, shared = self._parts.records, None
        if records is not None and target.lasting and not target.alone and target.definition.url:
            idle_ms = round(self._parts.limits.session_idle_s * 1000)
            shared = SharedSession(records, records.key(target.key), idle_ms)
        connection = ServerConnection(
            target.definition,
            target.credential,
            self._parts,
            guarded=target.guarded,
            shared=shared,
        )
        self._open.add(connection)
        return connection

    def _make_room(self) -> bool:
        """Close the connection that was idle longest; return whether there was one."""
        idle = [(kept.used_s, key) for key, kept in self._kept.items() if not kept.users]
        if not idle:
            return False
        self._end(self._kept.pop(min(idle)[1]).connection)
        return True


@asynccontextmanager
async def server_pool(
    *,
    id_prefix: str,
    limits: McpLimits = McpLimits(),  # noqa: B008  # frozen: one for all
    trust: Callable[[], SSLContext] = trusting,
    proxy: str = "",
    allowed: Callable[[str, str], bool] = refuse_all,
    records: SessionRecords | None = None,
) -> AsyncIterator[ServerPool]:
    """Yield a pool whose connections live until the end of the context. `id_prefix` begins the ids of its requests.

    `allowed` says of a URL that a client named, and an address, whether that may be connected with; `records` is what
    sessions are shared by.
    """
    async with asyncio.TaskGroup() as group:

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            task = group.create_task(_guarded(work))
            beside.add(task)
            task.add_done_callback(beside.discard)

        beside: set[asyncio.Task[None]] = set()
        ids = RequestIds(id_prefix)
        parts = ConnectionParts(
            limits, ids, spawn, trust=trust, proxy=proxy, allowed=allowed, records=records
        )
        pool = ServerPool(parts)
        spawn(_close_idle(pool))
        try:
            yield pool
        finally:
            await pool.close()
            for task in tuple(beside):
                task.cancel()


async def _taken(free: asyncio.Semaphore, until_s: float) -> bool:
    """Take one of the free calls, once there is one; return whether there was one in time."""
    if not free.locked():
        return await free.acquire()
    try:
        async with asyncio.timeout_at(until_s):
            await free.acquire()
    except TimeoutError:
        return False
    return True


def _limit(definition: ServerDefinition) -> str:
    return f"concurrency {definition.concurrency}"


async def _close_idle(pool: ServerPool) -> None:
    while True:
        left_s = pool.close_idle()
        await asyncio.sleep(min(max(left_s, 1.0), _LOOKS_MAX_S))


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # a stream of one server must not end the connections of all others
        _log.exception("work beside calls of MCP servers failed")


def _now_s() -> float:
    return asyncio.get_running_loop().time()
