"""Live servers of tools of one process: what is defined by now, and the pool of connections to it.

own file + shared definitions ─▶ what counts ─▶ servers as callers see them ─▶ pool of connections
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Protocol

from smg_node.cluster.definition_ports import DefinitionState
from smg_node.cluster.mcp.definitions import DefinedServer, Definitions, effective, read_own
from smg_node.cluster.mcp.tool_servers import ClusterToolServers, OpenPool
from smg_node.config.schema.problems import ConfigurationError, Problem
from smg_node.core.errors import SmgError
from smg_node.mcp.failures import Failure, refused
from smg_node.mcp.pool import ServerPool

if TYPE_CHECKING:
    from smg_node.cluster.mcp.run_accounts import RunAccounts

LATER_S: Final = 5.0
"""Secrets that could not be opened are tried again this often: the keyring may have changed."""

OPEN_S: Final = 5.0
"""A pool opens at once, but not before its node has started, and never again once it stops."""

_log = logging.getLogger("smg_node.cluster")


class ServersMaker(Protocol):
    """Makes the servers, when they are wanted for the first time."""

    def servers(
        self, read: Callable[[], Definitions], pool: OpenPool, sessions: Callable[[], int]
    ) -> ClusterToolServers:
        """Return the servers of this process."""
        ...

    def pool(self) -> AbstractAsyncContextManager[ServerPool]:
        """Return the context in which connections live."""
        ...


class LiveServers:
    """Servers of one process. `own` is what its file says, as JSON, "" without one.

    `accounts` returns what runs are charged to and counted in, None for nothing.
    """

    def __init__(
        self,
        own: str,
        shared: DefinitionState,
        maker: ServersMaker,
        monotonic_s: Callable[[], float],
        accounts: "Callable[[], RunAccounts | None]" = lambda: None,
    ) -> None:
        self._own_text = own
        self._shared = shared
        self._maker = maker
        self._monotonic_s = monotonic_s
        self._accounts = accounts
        self._own: Mapping[str, DefinedServer] | None = None
        self._now: Definitions | None = None
        self._last: Definitions | None = None
        """What counted last, current or not."""
        self._again_s = 0.0
        self._servers: ClusterToolServers | None = None
        self._pool: ServerPool | None = None
        self._wanted = asyncio.Event()
        self._opened = asyncio.Event()
        self._changed = asyncio.Event()
        self._complained: dict[str, str] = {}

    def check(self) -> None:
        """Read the node's own file. ConfigurationError names what is wrong in it."""
        try:
            self.own()
        except SmgError as error:
            raise ConfigurationError([Problem("mcp.file", error.message)]) from error

    def own(self) -> Mapping[str, DefinedServer]:
        """Return what the node's own file defines."""
        if self._own is None:
            self._own = read_own(self._own_text) if self._own_text else {}
        return self._own

    def made(self) -> ClusterToolServers:
        """Return the servers, whether or not there are any by now."""
        if self._servers is None:
            self._servers = self._maker.servers(self.read, self._open_pool, self._sessions)
            self._servers.accounts = self._accounts()
        return self._servers

    def read(self) -> Definitions:
        """Return what counts by what is shared now."""
        now = self._now
        if now is not None and not (now.troubled and self._monotonic_s() >= self._again_s):
            return now
        shared = self._shared
        before = {} if self._last is None else self._last.servers
        now = effective(self.own(), shared.providers.all(), shared.open_secret, before)
        self._now = self._last = now
        self._again_s = self._monotonic_s() + LATER_S
        self._complain(now)
        return now

    def note(self) -> None:
        """Take in that what is shared may have changed."""
        self._now = None
        self._changed.set()

    async def run(self) -> None:
        """Keep connections from their first use on, until cancelled; all have ended when this returns."""
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

    def _let_go(self, pool: ServerPool) -> None:
        """Let connections to servers end that nobody defines any more as they are."""
        assert self._servers is not None, "a pool is opened by servers"
        pool.let_go(self._servers.gone())

    async def _open_pool(self) -> ServerPool | Failure:
        try:
            async with asyncio.timeout(OPEN_S):
                while self._pool is None:
                    self._wanted.set()
                    await self._opened.wait()
        except TimeoutError:
            return refused("this node makes no connections to servers of tools now")
        return self._pool

    def _sessions(self) -> int:
        return 0 if self._pool is None else len(self._pool)

    def _complain(self, now: Definitions) -> None:
        """Log what of the cluster's definitions is not followed, once for each reason."""
        for key, why in now.unreadable.items():
            if self._complained.get(key) != why:
                _log.warning("%s is not followed here: %s", key, why)
        self._complained = dict(now.unreadable)
