"""Stores over a server of Redis's kind, each over keys of its own."""

import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import redis

from smg_storage.options import SchemaNames, StoreOptions
from smg_storage.redis.store import RedisStore
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock, KeptMaker, Opened
from support.stores.redis_server import URL_VARIABLE


def new_prefix() -> str:
    """Return a front of keys that nobody uses."""
    return f"t{secrets.token_hex(6)}"


@asynccontextmanager
async def redis_store(
    url: str, clock: Callable[[], int], prefix: str, *, wait_replicas: int = 0
) -> AsyncIterator[RedisStore]:
    """Open a store over keys of a prefix."""
    options = StoreOptions(
        schema=SchemaNames(owner=prefix), redis_wait_replicas=wait_replicas, redis_wait_ms=500
    )
    store = RedisStore(parse_store_url(url), options, clock)
    try:
        await store.start()
        yield store
    finally:
        await store.close()


class RedisMaker:
    """Fresh stores for the contract."""

    expires_by_itself = True

    def __init__(self, url: str) -> None:
        self._url = url

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        """Open two over the same keys, which nobody used before."""
        clock, prefix = Clock(), new_prefix()
        async with (
            redis_store(self._url, clock, prefix) as store,
            redis_store(self._url, clock, prefix) as other,
        ):
            yield Opened(store, other, clock)
        if URL_VARIABLE in os.environ and self._url == os.environ[URL_VARIABLE]:
            forget(self._url, prefix)


@asynccontextmanager
async def kept_redis(url: str) -> AsyncIterator[KeptMaker]:
    """Open stores on a server, or a cluster of one, for many cases; the server is emptied if it is ours."""
    clock, prefix = Clock(), new_prefix()
    is_given = url == os.environ.get(URL_VARIABLE)
    async with (
        redis_store(url, clock, prefix) as store,
        redis_store(url, clock, prefix) as other,
    ):
        with redis.Redis(port=urlsplit(url).port or 6379) as client:

            async def empty() -> None:
                for one in (store, other):
                    one._cursors.clear()  # a sweep goes on from where it was: over other keys
                if is_given:
                    forget(url, prefix)
                else:
                    client.flushdb()

            try:
                yield KeptMaker(Opened(store, other, clock), empty, expires_by_itself=True)
            finally:
                await empty()


def forget(url: str, prefix: str) -> None:
    """Leave nothing behind on a server that is somebody else's."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(f"{prefix}:*", count=1_000):
            client.delete(key)
