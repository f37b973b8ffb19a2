"""Redis store: history in Redis or Valkey, all parts together."""

from collections.abc import Callable, Sequence
from typing import Final

from smg_storage.errors import StoreError
from smg_storage.options import StoreOptions
from smg_storage.records import Access, PoolFigures, StoreFigures
from smg_storage.redis.conversations import RedisConversations
from smg_storage.redis.errors import door
from smg_storage.redis.lua_library import Effect
from smg_storage.redis.responses import RedisResponses
from smg_storage.redis.runs import RedisRuns
from smg_storage.redis.server import RedisServer
from smg_storage.redis.server_checks import look
from smg_storage.redis.store_part import found
from smg_storage.url import StoreUrl

_SCAN: Final = 1_000
"""Keys that a sweep looks at in one go, on each server: about a millisecond."""
_SCANS: Final = 10
"""So many times in one sweep."""


class RedisStore(RedisConversations, RedisResponses, RedisRuns):
    """A history store on a server, or on a cluster of them."""

    kind: Final = "redis"
    shared: Final = True

    def __init__(self, url: StoreUrl, options: StoreOptions, now_us: Callable[[], int]) -> None:
        super().__init__(RedisServer(url, options, now_us), options.deflate_bytes_min)
        self._options: Final = options
        self._cursors: Final[dict[str, int]] = {}
        self._warnings: Sequence[str] = ()

    @property
    def warnings(self) -> Sequence[str]:
        """What history may suffer from on this server, as it was found at start."""
        return self._warnings

    async def start(self) -> None:
        """Connect, load our functions, and look at the server's settings; StoreError where that cannot be."""
        async with door(self._options.connect_timeout_s + self._options.statement_timeout_s):
            await self._server.open()
            self._warnings = await look(self._server)
            await self._server.load()
            await self._server.ping()

    async def ping(self, *, timeout_s: float) -> None:
        """Return if it can be read and written; StoreError says what it cannot."""
        async with door(timeout_s):
            await self._server.ping()

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        """Take away some of what leads to nothing any more; what is over goes by itself.

        Looks at some keys each time, from where it was before: for items of conversations that are over or whose
        deletion was cut off, and for what is gone of people's lists.
        """
        swept = 0
        async with door(timeout_s):
            for _ in range(_SCANS):
                swept += await self._sweep_some()
                if swept >= batch or not any(self._cursors.values()):
                    break
        return swept

    async def _sweep_some(self) -> int:
        swept = 0
        lists: list[tuple[str, str]] = []
        for key in await self._server.scan(self._cursors, _SCAN):
            named = self._server.keys.swept(key)
            if named is None:
                continue
            tenant, kind, any_id = named
            if kind == "items":
                lists.append((tenant, any_id))
            elif kind == "trash":
                swept += await self.sweep_conversation(tenant, any_id)
            else:
                swept += await self.sweep_person(tenant, key)
        return swept + await self.sweep_over(lists)

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        """Return about how much there is: the bytes of the server's data, others' too."""
        async with door(timeout_s):
            told = await self._server.told("memory")
        used = told.get("used_memory_dataset", -1)
        return StoreFigures(bytes=int(str(used)))

    async def tenant_figures(self, access: Access) -> StoreFigures:
        """Return how much a tenant has, with what is over until the end of its day; in a cluster that is not known."""
        if not self._server.alone:
            return StoreFigures()
        async with door(access.timeout_s):
            key = self._server.keys.used(access.tenant)
            ask = self._server.ask("tenant_figures", access.tenant, "", key)
            sums = found(await self._server.call(Effect.FREE, ask))
            return StoreFigures(*(max(0, int(one)) for one in sums))

    def pool(self) -> PoolFigures | None:
        """Return how busy the connections are."""
        return self._server.pool()

    async def close(self) -> None:
        """End in order; what was acknowledged is kept."""
        try:
            async with door(self._options.connect_timeout_s):
                await self._server.close()
        except StoreError:
            return  # a server that is gone has closed its connections already
