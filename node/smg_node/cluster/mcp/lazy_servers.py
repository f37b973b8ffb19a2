"""Lazy tool servers of one process: made with the first definition, or where clients may give servers.

    own file + shared definitions ─▶ what counts ─▶ servers as callers see them ─▶ pool of connections

A node without any definition, and without servers by URL, imports nothing of them, and one task of it waits.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Protocol

from smg_mesh.shared import TOOL_SERVER
from smg_node.config.schema.problems import ConfigurationError, Problem
from smg_node.core.errors import SmgError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smg_node.cluster.mcp.definitions import DefinedServer, Definitions, SharedValue
    from smg_node.cluster.mcp.run_accounts import RunAccounts
    from smg_node.cluster.mcp.tool_servers import ClusterToolServers, OpenPool
    from smg_node.mcp.pool import ServerPool

LATER_S: Final = 5.0
"""Secrets that could not be opened are tried again this often: the keyring may have changed."""

_log = logging.getLogger("smg_node.cluster")


class ServerStore(Protocol):
    """Port to the shared definitions; `smg_mesh.shared.ProvidersView` fits."""

    def all(self) -> "Sequence[SharedValue]":
        """Return all values, sorted by key."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell of changes."""
        ...


class DefinitionState(Protocol):
    """Port to the shared state that definitions are in."""

    @property
    def providers(self) -> ServerStore:
        """The definitions, among those of providers."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any member sealed; None if this node has not the key."""
        ...


class ServersMaker(Protocol):
    """Makes the servers, when they are wanted for the first time."""

    def servers(
        self, read: "Callable[[], Definitions]", pool: "OpenPool", sessions: Callable[[], int]
    ) -> "ClusterToolServers":
        """Return the servers of this process."""
        ...

    def pool(self) -> "AbstractAsyncContextManager[ServerPool]":
        """Return the context in which connections live."""
        ...


class LazyToolServers:
    """Servers of one process. `own` is what its file says, as JSON, "" without one; `dynamic`: clients may give some."""

    def __init__(
        self,
        own: str,
        shared: DefinitionState,
        maker: ServersMaker,
        monotonic_s: Callable[[], float],
        *,
        dynamic: bool,
    ) -> None:
        self._own_text = own
        self._shared = shared
        self._maker = maker
        self._monotonic_s = monotonic_s
        self._dynamic = dynamic
        self._own: Mapping[str, DefinedServer] | None = None
        self._now: Definitions | None = None
        self._last: Definitions | None = None
        """What counted last, current or not."""
        self._again_s = 0.0
        self._is_some = False
        self._is_stale = True
        self._servers: ClusterToolServers | None = None
        self._pool: ServerPool | None = None
        self._wanted = asyncio.Event()
        self._opened = asyncio.Event()
        self._changed = asyncio.Event()
        self._complained: dict[str, str] = {}
        self.accounts: Callable[[], RunAccounts] | None = None
        """Makes what runs are charged to and counted in."""
        shared.providers.watch(self._noted)

    def check(self) -> None:
        """Read the node's own file. ConfigurationError names what is wrong in it."""
        if self._own_text:
            try:
                self._own_servers()
            except SmgError as error:
                raise ConfigurationError([Problem("mcp.file", error.message)]) from error

    def __bool__(self) -> bool:
        """Whether there is any: see `has`."""
        return self.has()

    def has(self) -> bool:
        """Whether there is any: one that is defined here or in the cluster, or clients may give some. Cheap."""
        if self._is_stale:
            self._look()
        return self._is_some

    def get(self) -> "ClusterToolServers | None":
        """Return the servers; None while there are none."""
        if not self.has():
            return None
        return self.made()

    def made(self) -> "ClusterToolServers":
        """Return the servers, whether or not there are any by now."""
        if self._servers is None:
            sessions = self._sessions
            self._servers = self._maker.servers(self.read, self._open_pool, sessions)
            if self.accounts is not None:
                self._servers.accounts = self.accounts()
        return self._servers

    def read_anew(self) -> "Definitions":
        """Return what counts, also where nothing was said of a change yet: after one of this node's own."""
        self._is_stale = True
        return self.read()

    def read(self) -> "Definitions":
        """Return what counts by what is shared now."""
        now = self._now
        if self._is_stale:
            self._look()
            now = None
        if now is not None and not (now.troubled and self._monotonic_s() >= self._again_s):
            return now
        # Imported with the first definition: a node without servers has none of it.
        from smg_node.cluster.mcp.definitions import effective

        shared = self._shared
        before = {} if self._last is None else self._last.servers
        values = shared.providers.all()
        now = effective(self._own_servers(), values, shared.open_secret, before)
        self._now = self._last = now
        self._again_s = self._monotonic_s() + LATER_S
        self._complain(now)
        return now

    async def run(self) -> None:
        """Keep connections from their first use on, until cancelled; all have ended when this returns."""
        # What was read from the disk came without a word.
        self._is_stale = True
        await self._wanted.wait()
        async with self._maker.pool() as pool:
            self._pool = pool
            self._opened.set()
            try:
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    self._let_go(pool)
            finally:
                self._pool = None
                self._opened.clear()

    def _let_go(self, pool: "ServerPool") -> None:
        """Let connections to servers end that nobody defines any more as they are."""
        assert self._servers is not None, "a pool is opened by servers"
        pool.let_go(self._servers.gone())

    async def _open_pool(self) -> "ServerPool":
        while self._pool is None:
            self._wanted.set()
            await self._opened.wait()
        return self._pool

    def _sessions(self) -> int:
        return 0 if self._pool is None else len(self._pool)

    def _look(self) -> None:
        """See what is shared now."""
        self._is_stale = False
        self._now = None
        shared = any(one.key.startswith(TOOL_SERVER) for one in self._shared.providers.all())
        self._is_some = self._dynamic or shared or bool(self._own_servers())

    def _noted(self, keys: Sequence[str]) -> None:
        if any(key.startswith(TOOL_SERVER) for key in keys):
            self._is_stale = True
            self._changed.set()

    def _own_servers(self) -> "Mapping[str, DefinedServer]":
        if self._own is None:
            if not self._own_text:
                self._own = {}
            else:
                from smg_node.cluster.mcp.definitions import read_own

                self._own = read_own(self._own_text)
        return self._own

    def _complain(self, now: "Definitions") -> None:
        """Log what of the cluster's definitions is not followed, once for each reason."""
        for key, why in now.unreadable.items():
            if self._complained.get(key) != why:
                _log.warning("%s is not followed here: %s", key, why)
        self._complained = dict(now.unreadable)
