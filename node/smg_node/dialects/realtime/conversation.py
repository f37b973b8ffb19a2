"""Conversation of a session: its items in their order, each behind the one that its events name. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from smg_node.core.cooperative_steps import whole
from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_node.dialects.realtime.items import ROOT, Item
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_groups import unmatched
from smg_node.dialects.responses.items.item_types import CALL_OUTPUTS, OUTPUTS


@dataclass(frozen=True, slots=True)
class _Place:
    """An item at its place. `writer` is the answer that is still saying it, "" for none."""

    item: Item
    writer: str = ""
    left_out: bool = False
    """Whether truncation has taken it out of all prompts to come."""


@dataclass(frozen=True, slots=True)
class Context:
    """Items of a prompt, oldest first. `owners` are the ids of the conversation's items that they came from.

    `orphan` is the id of a call that is not there though its output is, "" for none.
    """

    docs: tuple[ItemDoc, ...] = ()
    owners: tuple[str, ...] = ()
    orphan: str = ""


class Conversation:
    """Items in order, at most so many and of so many bytes."""

    def __init__(self, *, items_max: int, bytes_max: int) -> None:
        self._items_max = items_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._order: list[str] = []
        self._places: dict[str, _Place] = {}

    def __iter__(self) -> Iterator[Item]:
        return (self._places[item_id].item for item_id in self._order)

    def check_room(self, item: Item | None = None) -> None:
        """Raise INVALID_REQUEST `conversation_too_long` if there is no room for this item, or for any."""
        size, where = (1, None) if item is None else (item.size, "item")
        if len(self._order) >= self._items_max:
            raise _full(f"{self._items_max} items", where)
        if self._bytes + size > self._bytes_max:
            raise _full(f"{self._bytes_max} bytes of items", where)

    def add(self, item: Item, *, after: str | None, writer: str = "") -> str | None:
        """Put an item behind `after` (`root`: at the front, None: at the end), and return the id of its predecessor.

        INVALID_REQUEST `item_not_found` for an unknown predecessor, `invalid_value` for an id that is there already. Who
        lets a client add one looks for room before.
        """
        if item.id in self._places:
            raise invalid(f"there is an item {quoted(item.id)} already", "item.id")
        place = len(self._order) if after is None else self._behind(after)
        self._order.insert(place, item.id)
        self._places[item.id] = _Place(item, writer)
        self._bytes += item.size
        return self._order[place - 1] if place else None

    def _behind(self, after: str) -> int:
        if after == ROOT:
            return 0
        if after not in self._places:
            raise not_found(after, "previous_item_id")
        return self._order.index(after) + 1

    def previous(self, item_id: str) -> str | None:
        """Return the id of the item before this one; None for the first."""
        place = self._order.index(item_id)
        return self._order[place - 1] if place else None

    def finish(self, item: Item) -> None:
        """Put the finished item in the place of the one that was being said."""
        old = self._places[item.id]
        assert old.writer, "an item is finished once"
        self._places[item.id] = replace(old, item=item, writer="")
        self._bytes += item.size - old.item.size

    def remove(self, item_id: str) -> None:
        """Remove an item. INVALID_REQUEST `item_not_found`; `item_in_use` for one that an answer is still saying."""
        place = self._found(item_id, "item_id")
        if place.writer:
            why = f"item {quoted(item_id)} is being written by the response {place.writer}"
            raise invalid(why, "item_id", "item_in_use")
        self._order.remove(item_id)
        del self._places[item_id]
        self._bytes -= place.item.size

    def item(self, item_id: str, where: str) -> Item:
        """Return an item as it is; INVALID_REQUEST `item_not_found` at the path `where`."""
        return self._found(item_id, where).item

    def finished_item(self, item_id: str, where: str) -> Item:
        """Return an item that is whole; INVALID_REQUEST `item_not_found`, `item_in_use` for one that is being said."""
        place = self._found(item_id, where)
        if place.writer:
            raise invalid(f"item {quoted(item_id)} is still being written", where, "item_in_use")
        return place.item

    def _found(self, item_id: str, where: str) -> _Place:
        place = self._places.get(item_id)
        if place is None:
            raise not_found(item_id, where)
        return place

    def calls_before(self, after: str | None) -> Iterator[str]:
        """Yield the ids of the calls that stand before what is put behind `after`, as `add` does."""
        end = len(self._order) if after is None else self._behind(after)
        for item_id in self._order[:end]:
            item = self._places[item_id].item
            if item.prompt.type in CALL_OUTPUTS and not item.is_cut:
                yield call_of(item)

    def leave_out(self, item_ids: Iterable[str]) -> None:
        """Leave these out of all prompts from now on; they stay in the conversation. Those that are gone are gone."""
        for item_id in item_ids:
            place = self._places.get(item_id)
            if place is not None:
                self._places[item_id] = replace(place, left_out=True)

    def context(self) -> Context:
        """Return what a prompt has of it now: nothing that is being said, of a call that was cut off only what was thought
        before, and no output whose call was left out.
        """
        docs: list[ItemDoc] = []
        owners: list[str] = []
        called: dict[str, bool] = {}
        orphan = ""
        for item_id in self._order:
            place = self._places[item_id]
            item, kind = place.item, place.item.prompt.type
            if place.writer or place.left_out:
                called.update({call_of(item): False} if kind in CALL_OUTPUTS else {})
                continue
            parts = (*item.before, item.prompt, *item.after)
            if kind in CALL_OUTPUTS:
                called[call_of(item)] = not item.is_cut
                parts = item.before if item.is_cut else parts
            elif kind in OUTPUTS and not called.get(call_of(item), False):
                # Its call has left the prompt, which is nobody's mistake, or the conversation, which is the client's.
                orphan = orphan if call_of(item) in called else orphan or call_of(item)
                continue
            docs.extend(parts)
            owners.extend([item_id] * len(parts))
        return Context(tuple(docs), tuple(owners), orphan)


def call_of(item: Item) -> str:
    """Return the id of the call that an item is, or that it answers; "" for a message."""
    return str(item.shown.get("call_id", ""))


def check_context(context: Context) -> None:
    """Raise INVALID_REQUEST if an output is in this context whose call was deleted."""
    if context.orphan:
        raise _no_call(context.orphan, None)


def check_calls(docs: Sequence[ItemDoc], where: str) -> None:
    """Raise INVALID_REQUEST if one of these is the output of a call that none of those before it is."""
    if any(doc.type in OUTPUTS for doc in docs):
        orphans = whole(unmatched(docs)).orphans
        if orphans:
            raise _no_call(orphans[0], where)


def check_output(conversation: Conversation, item: Item, after: str | None) -> None:
    """Raise INVALID_REQUEST if an item to be put behind `after` is the output of a call that is not before it."""
    if item.prompt.type in OUTPUTS and call_of(item) not in conversation.calls_before(after):
        raise _no_call(call_of(item), "item.call_id")


def _no_call(call_id: str, where: str | None) -> SmgError:
    return invalid(f"no tool call found for call_id {quoted(call_id)}", where)


def not_found(item_id: str, where: str) -> SmgError:
    """Return the error for an item that does not exist."""
    return invalid(f"there is no item {quoted(item_id)}", where, "item_not_found")


def _full(what: str, where: str | None) -> SmgError:
    why = f"a conversation may have at most {what}: delete some, or begin a new session"
    return invalid(why, where, "conversation_too_long")
