"""Opaque state cache: opaque state of vendors' answers, kept in the history store for a day, each tenant's apart.

A row is an item that no conversation has: every store keeps those until they are over, finds many of them in one round
trip, and shows no tenant another's. It is sealed like what clients carry, because thoughts are in it. Where nodes share
a store, each of them finds what the others kept.

The cache has a store of its own, opened with its first use. A store that fails, or cannot be opened, loses state and
nothing else: no caller is told, and for a while it is not asked again.
"""

import asyncio
import base64
import binascii
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from smg_node.history.ports import STATE_ITEM
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import NO_TENANT, Access, Item

if TYPE_CHECKING:
    from smg_node.history.ports import Vault
    from smg_storage.store import HistoryStore

CACHE_MAX_BYTES: Final = 256 << 20
"""So much is kept of one process, of any 24 hours; beyond it nothing new is."""
OPEN_S: Final = 30.0
"""How long opening the store may take, which may bring its tables up to date; connecting has a shorter limit of its own."""
REST_S: Final = 5.0
"""How long a store that failed is left alone."""
CLOSED_REST_S: Final = 30.0
"""How long one is that could not be opened."""
SWEEP_S: Final = 600.0
_HOUR_S: Final = 3_600.0
_HOURS: Final = 24
_SWEPT: Final = 1_000
T = TypeVar("T")
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(str).decode
_log: Final = logging.getLogger("smg_node.history")


class OpaqueStateCache:
    """The cache of one process; see `StateCache`. Rows are over `kept_s` after they were kept."""

    def __init__(
        self,
        open_store: Callable[[], "HistoryStore"],
        vault: "Vault",
        *,
        now_us: Callable[[], int],
        now_s: Callable[[], float],
        kept_s: int,
        call_s: float,
        observe: Callable[[str, str, float], None],
        bytes_max: int = CACHE_MAX_BYTES,
    ) -> None:
        """Take how the store is made, in a thread. `now_us` is Unix time, `now_s` monotonic.

        A request waits for an operation of the store, `call_s` at most. `observe` counts one: its name, its outcome,
        its seconds.
        """
        self._open_store: Final = open_store
        self._vault: Final = vault
        self._now_us: Final = now_us
        self._now_s: Final = now_s
        self._kept_us: Final = kept_s * 1_000_000
        self._call_s: Final = call_s
        self._observe: Final = observe
        self._room: Final = _Room(bytes_max)
        self._opening: Final = asyncio.Lock()
        self._store: HistoryStore | None = None
        self._rests_until_s = float("-inf")
        self._swept_s = now_s()

    async def keep(self, tenant: str, key: str, row: bytes) -> None:
        """Keep a row under a key; the first one under it stays."""
        now_us, access = self._now_us(), self._access(tenant)
        document = _encode(base64.b64encode(self._vault.seal(row.decode())).decode())
        if not self._room.take(len(document), self._now_s()):
            _log.debug("the cache of opaque state is full; a row is not kept")
            return
        item = Item(
            id=_id(key),
            item_type=STATE_ITEM,
            document=document,
            created_us=now_us,
            expires_us=now_us + self._kept_us,
        )
        await self._asked("keep_state", lambda store: store.create_item(access, item))
        await self._sweep()

    async def find(self, tenant: str, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the rows that are there, by key."""
        names = {_id(key): key for key in keys}
        access = self._access(tenant)
        found = await self._asked("find_state", lambda store: store.find_items(access, list(names)))
        rows: dict[str, bytes] = {}
        for name, item in (found or {}).items():
            row = self._opened(item)
            if row is not None and name in names:
                rows[names[name]] = row
        return rows

    async def close(self) -> None:
        """Close the store, if it was opened."""
        store, self._store = self._store, None
        self._rests_until_s = float("inf")
        if store is not None:
            await store.close()

    def _opened(self, item: Item) -> bytes | None:
        """Return what an item holds; None for one that is none of its own, or was sealed with a key that is gone."""
        try:
            sealed = base64.b64decode(_decode(item.document), validate=True)
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            return None
        row = self._vault.open_secret(sealed)
        return None if row is None else row.encode()

    def _access(self, tenant: str) -> Access:
        return Access(tenant=tenant or NO_TENANT, timeout_s=self._call_s)

    # ── The store ────────────────────────────────────────────────────────────

    async def _asked(
        self, operation: str, ask: Callable[["HistoryStore"], Awaitable[T]]
    ) -> T | None:
        """Return what the store answers; None where it does not."""
        began_s = self._now_s()
        if began_s < self._rests_until_s:
            self._observe(operation, "away", 0.0)
            return None
        outcome, answer = "cancelled", None
        try:
            store = self._store or await self._started()
            if store is None:
                outcome = "away"
                return None
            async with asyncio.timeout(self._call_s):
                answer = await ask(store)
            outcome = "ok"
        except Exception as error:
            # A store may be somebody else's code: whatever it does costs no request.
            kind = error.kind if isinstance(error, StoreError) else StoreErrorKind.UNAVAILABLE
            outcome = kind.value
            if kind is not StoreErrorKind.CONFLICT:
                self._rest(error)
        finally:
            self._observe(operation, outcome, self._now_s() - began_s)
        return answer

    async def _started(self) -> "HistoryStore | None":
        """Return the open store; None where somebody who came before found that it cannot be opened."""
        async with self._opening:
            if self._store is None:
                if self._now_s() < self._rests_until_s:
                    return None
                async with asyncio.timeout(OPEN_S):
                    store = await asyncio.to_thread(self._open_store)
                    await store.start()
                self._store = store
            return self._store

    def _rest(self, error: Exception) -> None:
        """Leave the store alone for a while."""
        rest_s = CLOSED_REST_S if self._store is None else REST_S
        self._rests_until_s = max(self._rests_until_s, self._now_s() + rest_s)
        # What somebody else's code says may hold an address with its password.
        words = str(error) if isinstance(error, StoreError) else type(error).__name__
        _log.warning("opaque state of vendors is neither kept nor found: %s", words)

    async def _sweep(self) -> None:
        """Take away what is over, where no other process does: not in a store that is shared."""
        store = self._store
        if store is None or store.shared or self._now_s() - self._swept_s < SWEEP_S:
            return
        self._swept_s = self._now_s()
        now_us = self._now_us()
        await self._asked(
            "purge_state",
            lambda store: store.purge(now_us=now_us, batch=_SWEPT, timeout_s=self._call_s),
        )


class _Room:
    """Bytes of the last day, by the hour."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._hours: deque[tuple[int, int]] = deque()
        self._bytes = 0

    def take(self, count: int, now_s: float) -> bool:
        """Take room for so many bytes; False if there is none."""
        hour = int(now_s // _HOUR_S)
        while self._hours and self._hours[0][0] <= hour - _HOURS:
            self._bytes -= self._hours.popleft()[1]
        if self._bytes + count > self._bytes_max:
            return False
        self._bytes += count
        if self._hours and self._hours[-1][0] == hour:
            count += self._hours.pop()[1]
        self._hours.append((hour, count))
        return True


def _id(key: str) -> str:
    return f"state_{key}"
