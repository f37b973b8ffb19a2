"""Memory store: the whole protocol in memory, bounded, and gone with the process.

It is for tests and for nodes whose history need not last: 10,000 responses, 100,000 items and 512 MiB, a day long. What
is the oldest thread goes first. Other nodes see nothing of it.
"""

from collections.abc import Callable

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.row_store import RowStore
from smg_storage.memory.rows import Tally
from smg_storage.memory.runs import MemoryRuns
from smg_storage.options import Bounds, StoreOptions
from smg_storage.records import Access, PoolFigures, StoreFigures
from smg_storage.store import HistoryStore
from smg_storage.url import StoreUrl


class MemoryStore(MemoryRuns):
    """History in bounded dictionaries."""

    def __init__(self, bounds: Bounds, now_us: Callable[[], int]) -> None:
        super().__init__(RowStore(bounds), now_us)
        self._closed = False

    @property
    def kind(self) -> str:
        """Which it is: memory."""
        return "memory"

    @property
    def shared(self) -> bool:
        """Whether all nodes of a cluster see the same: they do not."""
        return False

    async def start(self) -> None:
        """Begin; there is nothing to connect to."""

    async def ping(self, *, timeout_s: float) -> None:
        """Return; memory is always there until it is closed."""
        if self._closed:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "history in memory was closed")

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        """Take away some of what is over, the oldest first; return how much it was."""
        self._shelf.let_go(now_us)
        return self._shelf.purge(now_us, batch)

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        """Return how much there is, of all tenants."""
        return StoreFigures(
            conversations=len(self._shelf.conversations),
            items=len(self._shelf.items),
            responses=len(self._shelf.responses),
            bytes=self._shelf.bytes,
        )

    async def tenant_figures(self, access: Access) -> StoreFigures:
        """Return how much a tenant has; `bytes` is what all of it takes here."""
        self._begin()
        tally = self._shelf.tenants.get(access.tenant, Tally())
        return StoreFigures(
            conversations=tally.conversations,
            items=tally.items,
            responses=tally.responses,
            bytes=tally.bytes,
        )

    def pool(self) -> PoolFigures | None:
        """Return None: there are no connections."""
        return None

    async def close(self) -> None:
        """End; what was kept is forgotten with this object."""
        self._closed = True


def open_store(url: StoreUrl, options: StoreOptions, now_us: Callable[[], int]) -> HistoryStore:
    """Return an empty store."""
    return MemoryStore(options.memory, now_us)
