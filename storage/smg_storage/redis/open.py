"""Opening of a store in Redis by its URL."""

from collections.abc import Callable

from smg_storage.options import StoreOptions
from smg_storage.redis.store import RedisStore
from smg_storage.store import HistoryStore
from smg_storage.url import StoreUrl


def open_store(url: StoreUrl, options: StoreOptions, now_us: Callable[[], int]) -> HistoryStore:
    """Return a store over a server or a cluster, not started yet."""
    return RedisStore(url, options, now_us)
