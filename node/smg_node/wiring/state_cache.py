"""State cache of a process: loaded, and its store opened, with the first answer of a vendor that has opaque state."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock
from smg_node.dialects.thought_seals import PlainVault, Vault
from smg_node.telemetry.metrics.meters import Meters

if TYPE_CHECKING:
    from smg_node.history.store.opaque_state_cache import OpaqueStateCache
    from smg_storage.store import HistoryStore

_NOWHERE = "none"
_CONNECTIONS = 2


class LazyStateCache:
    """The cache; see `StateCache`. Nothing is kept without a store, or where `providers.state_kept_s` is 0."""

    def __init__(self, settings: Settings, clock: Clock, meters: Meters) -> None:
        self._settings = settings
        self._clock = clock
        self._meters = meters
        self._vault: Vault = PlainVault()
        self._cache: OpaqueStateCache | None = None

    def connect(self, vault: Vault) -> None:
        """Seal with this from now on; before the first use."""
        self._vault = vault

    @property
    def _keeps(self) -> bool:
        settings = self._settings
        return settings.storage.kind != _NOWHERE and settings.providers.state_kept_s > 0

    async def keep(self, tenant: str, key: str, row: bytes) -> None:
        """Keep a row under a key."""
        if self._keeps:
            await self._loaded().keep(tenant, key, row)

    async def find(self, tenant: str, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the rows that are there, by key."""
        return await self._loaded().find(tenant, keys) if self._keeps else {}

    async def close(self) -> None:
        """Close the store, if it was opened."""
        if self._cache is not None:
            await self._cache.close()

    def _loaded(self) -> "OpaqueStateCache":
        if self._cache is None:
            from smg_node.history.store.opaque_state_cache import OpaqueStateCache

            clock = self._clock
            self._cache = OpaqueStateCache(
                self._open,
                self._vault,
                now_us=lambda: clock.now_ms() * 1_000,
                now_s=clock.monotonic_s,
                kept_s=self._settings.providers.state_kept_s,
                call_s=self._settings.storage.timeout_s,
                observe=self._meters.store_operation,
            )
        return self._cache

    def _open(self) -> "HistoryStore":
        """Return the node's history store, on few connections of its own; called in a thread."""
        from smg_node.history.store.opaque_state_cache import CACHE_MAX_BYTES
        from smg_node.history.store.open_store import store_options, store_url
        from smg_storage.open import open_store

        options = store_options(self._settings)
        bounds = replace(options.memory, bytes_max=min(options.memory.bytes_max, CACHE_MAX_BYTES))
        options = replace(
            options,
            pool_size=min(options.pool_size, _CONNECTIONS),
            redis_connections=min(options.redis_connections, _CONNECTIONS),
            memory=bounds,
        )
        clock = self._clock
        return open_store(
            store_url(self._settings), options=options, now_us=lambda: clock.now_ms() * 1_000
        )
