"""Store call: an operation of a store as a value; and the base of every store around another."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from smg_storage.records import Access, Turn
from smg_storage.store import HistoryStore

T = TypeVar("T")


class Call(msgspec.Struct, frozen=True):
    """Call of a store: on whose behalf (None: of all tenants), and about which ids."""

    operation: str
    access: Access | None
    ids: Sequence[str] = ()
    of_all: bool = False
    """Whether it may be about everything the tenant has."""


def mark_of(key: str) -> str:
    """Return what stands for a client's key among ids; it is no id itself."""
    return f"key {key}"


def ids_of(turn: Turn) -> tuple[str, ...]:
    """Return everything that a turn writes or appends to, by id."""
    response, key = turn.response, turn.idempotency
    ids = [
        response.id,
        response.conversation_id,
        *(item.id for item in turn.items),
        *turn.links,
        *(location.item_id for location in turn.locations),
        mark_of(key.key) if key is not None else "",
    ]
    return tuple(dict.fromkeys(filter(None, ids)))


class StoreWrapperBase:
    """Base of what goes around a store, `inner`."""

    def __init__(self, inner: HistoryStore) -> None:
        self.inner = inner

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        """Do it."""
        return await run()
