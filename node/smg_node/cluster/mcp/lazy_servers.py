"""Lazy tool servers of one process: made with the first definition, or where clients may give servers.

A node without any definition, and without servers by URL, imports nothing of them, and one task of it waits.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smg_mesh.shared import TOOL_SERVER
from smg_node.cluster.definition_ports import DefinitionState

if TYPE_CHECKING:
    from smg_node.cluster.mcp.definitions import Definitions
    from smg_node.cluster.mcp.live_servers import LiveServers
    from smg_node.cluster.mcp.run_accounts import RunAccounts
    from smg_node.cluster.mcp.tool_servers import ClusterToolServers


class LazyToolServers:
    """Servers of one process. `own`: its file defines some, perhaps; `dynamic`: clients may give some.

    `make` makes the live servers. As a truth it says whether there are any, as `has` does.
    """

    def __init__(
        self,
        shared: DefinitionState,
        make: "Callable[[], LiveServers]",
        *,
        own: bool = False,
        dynamic: bool = False,
    ) -> None:
        self._shared = shared
        self._make = make
        self._own = own
        self._dynamic = dynamic
        self._is_some = False
        self._is_stale = True
        self._live: LiveServers | None = None
        self._made = asyncio.Event()
        self.accounts: Callable[[], RunAccounts] | None = None
        """Makes what runs are charged to and counted in."""
        shared.providers.watch(self._noted)

    def __bool__(self) -> bool:
        """Whether there is any: see `has`."""
        return self.has()

    def has(self) -> bool:
        """Whether there is any: one that is defined here or in the cluster, or clients may give some. Cheap."""
        if self._is_stale:
            self._is_stale = False
            if self._live is not None:
                self._live.note()
            shared = any(one.key.startswith(TOOL_SERVER) for one in self._shared.providers.all())
            self._is_some = self._dynamic or shared or (self._own and bool(self.live().own()))
        return self._is_some

    def check(self) -> None:
        """Read the node's own file. ConfigurationError names what is wrong in it."""
        if self._own:
            self.live().check()

    def get(self) -> "ClusterToolServers | None":
        """Return the servers; None while there are none."""
        return self.live().made() if self.has() else None

    def made(self) -> "ClusterToolServers":
        """Return the servers, whether or not there are any by now."""
        return self.live().made()

    def read(self) -> "Definitions":
        """Return what counts by what is shared now."""
        self.has()
        return self.live().read()

    def read_anew(self) -> "Definitions":
        """Return what counts, also where nothing was said of a change yet: after one of this node's own."""
        self._is_stale = True
        return self.read()

    def live(self) -> "LiveServers":
        """Return the live servers, made at the first call."""
        if self._live is None:
            self._live = self._make()
            self._made.set()
        return self._live

    async def run(self) -> None:
        """Keep connections from their first use on, until cancelled; all have ended when this returns."""
        # What was read from the disk came without a word.
        self._is_stale = True
        await self._made.wait()
        await self.live().run()

    def _noted(self, keys: Sequence[str]) -> None:
        if any(key.startswith(TOOL_SERVER) for key in keys):
            self._is_stale = True
            if self._live is not None:
                self._live.note()
