"""History in Redis or Valkey: all parts together."""

from collections.abc import Callable, Sequence
from typing import Final

from smg_storage.errors import StoreError
from smg_storage.options import StoreOptions
from smg_storage.records import StoreFigures
from smg_storage.redis.checks import look
from smg_storage.redis.conversations import RedisConversations
from smg_storage.redis.errors import door
from smg_storage.redis.responses import RedisResponses
from smg_storage.redis.runs import RedisRuns
from smg_storage.redis.server import RedisServer
from smg_storage.url import StoreUrl

_SCAN: Final = 1_000
"""Keys that a sweep looks at in one go, on each server: about a millisecond."""


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

        Looks at some keys each time, from where it was before: for items of conversations whose deletion was cut off,
        and for what is gone of people's lists.
        """
        swept = 0
        async with door(timeout_s):
            for key in await self._server.scan(self._cursors, _SCAN):
                named = self._server.keys.swept(key)
                if named is None or swept >= batch:
                    continue
                tenant, kind, conversation_id = named
                if kind == "trash":
                    swept += await self.sweep_conversation(tenant, conversation_id)
                else:
                    swept += await self.sweep_person(tenant, key)
        return swept

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        """Return about how much there is: the bytes of the server's data, others' too."""
        async with door(timeout_s):
            told = await self._server.told("memory")
        used = told.get("used_memory_dataset", -1)
        return StoreFigures(bytes=int(str(used)))

    async def close(self) -> None:
        """End in order; what was acknowledged is kept."""
        try:
            async with door(self._options.connect_timeout_s):
                await self._server.close()
        except StoreError:
            return  # a server that is gone has closed its connections already
