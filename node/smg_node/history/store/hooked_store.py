"""Hooked store: a keeper that calls the operator's hooks around every operation.

Hooks are called before anything is kept, in the store or on this node's disk: a turn that was
acknowledged to a client is not rejected later, when the store is available again.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from smg_node.history.ports import Keeper, Kept
from smg_storage.hooks import HookedStore, NamedHook
from smg_storage.records import Access, Turn
from smg_storage.store import HistoryStore


class HookedKeeper:
    """A keeper that passes every operation through the operator's hooks."""

    def __init__(self, keeping: Keeper, hooks: Sequence[NamedHook]) -> None:
        self._keeping: Final = keeping
        self._store: Final = HookedStore(keeping.store, hooks)

    @property
    def store(self) -> HistoryStore:
        """Store for all reads, and for writes that their caller can repeat."""
        return self._store

    def check_can_keep(self) -> None:
        """Return if a turn made now can be made durable, as far as is known; else UNAVAILABLE."""
        self._keeping.check_can_keep()

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable as the hooks changed it; StoreError if that cannot be, REJECTED if a
        hook refuses it.
        """
        agreed = await self._store.agreed(access, turn)
        kept = await self._keeping.commit(access, agreed)
        await self._store.told(access, agreed, kept.positions)
        return kept

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Write a turn into the store itself as the hooks changed it; StoreError as above."""
        agreed = await self._store.agreed(access, turn)
        kept = await self._keeping.write(access, agreed)
        await self._store.told(access, agreed, kept.positions)
        return replace(kept, response=agreed.response.response)
