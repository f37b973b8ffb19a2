"""What keeps history, with the operator's hooks around it.

Hooks have their say before anything is kept, in the store or on this node's disk: what was told to a client as kept is
not rejected later, when the store is back.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from smg_node.history.ports import Keeper, Kept
from smg_storage.hooks import HookedStore, NamedHook
from smg_storage.records import Access, Turn
from smg_storage.store import HistoryStore


class HookedKeeper:
    """A keeper whose every operation shows itself to hooks."""

    def __init__(self, keeping: Keeper, hooks: Sequence[NamedHook]) -> None:
        self._keeping: Final = keeping
        self._store: Final = HookedStore(keeping.store, hooks)

    @property
    def store(self) -> HistoryStore:
        """Where everything is read, and written that can be written again by whoever asked."""
        return self._store

    def check_can_keep(self) -> None:
        """Return if a turn that is made now can be made durable, as far as is known; else UNAVAILABLE."""
        self._keeping.check_can_keep()

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable as the hooks want it; StoreError if that cannot be, REJECTED if one does not want it."""
        agreed = await self._store.agreed(access, turn)
        kept = await self._keeping.commit(access, agreed)
        await self._store.told(access, agreed, kept.positions)
        return kept

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Write a turn into the store itself as the hooks want it; StoreError as above."""
        agreed = await self._store.agreed(access, turn)
        kept = await self._keeping.write(access, agreed)
        await self._store.told(access, agreed, kept.positions)
        return replace(kept, response=agreed.response.response)
