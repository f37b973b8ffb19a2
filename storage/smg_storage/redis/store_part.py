"""Store part: what every part of a store in Redis has: the server, and how records become calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import thread_of
from smg_storage.records import Item
from smg_storage.redis.codec import item_digest, pack_item
from smg_storage.redis.server import Ask, RedisServer

T = TypeVar("T")


class Part:
    """A part of the store over one server."""

    def __init__(self, server: RedisServer, deflate_bytes_min: int) -> None:
        self._server: Final = server
        self._deflate_bytes_min: Final = deflate_bytes_min

    def _ask(self, function: str, tenant: str, any_id: str, **arguments: object) -> Ask:
        """Return a call for the slot in which an id lies."""
        return self._server.ask(function, tenant, thread_of(any_id), **arguments)

    def _near(self, thread: str, any_id: str) -> bool:
        """Return whether a function asked at a thread's slot reaches an id."""
        return self._server.alone or thread_of(any_id) == thread

    async def _item(self, ask: Ask, item: Item) -> dict[str, object]:
        """Return an item as functions take it, its content added to the call if it can be written there."""
        thread = thread_of(item.id)
        near = self._server.alone or thread == ask.arguments["g"]
        return {
            "i": item.id,
            "t": thread,
            "b": ask.blob(await pack_item(item, self._deflate_bytes_min)) if near else 0,
            "h": item_digest(item),
            "x": str(item.expires_us),
            "n": str(len(item.document)),
        }


def link(item_id: str) -> dict[str, str]:
    """Return an item's id as functions take it."""
    return {"i": item_id, "t": thread_of(item_id)}


def by_thread(things: Iterable[tuple[str, T]]) -> Mapping[str, Sequence[T]]:
    """Return what belongs to each thread, by the ids that come with it, in their order."""
    groups: dict[str, list[T]] = {}
    for any_id, thing in things:
        groups.setdefault(thread_of(any_id), []).append(thing)
    return groups


def found(answer: list[Any] | None) -> list[Any]:
    """Return an answer that a function always gives."""
    if answer is None:
        raise StoreError(StoreErrorKind.CORRUPT, "redis: a function has no answer")
    return answer
