"""Turn plan: what several turns change together, decided from what is
there, before anything is written.

A group of turns is one transaction. Each is looked at by itself, against what is there and what those before it in
the group will have written; one that cannot be says why, and leaves no trace in what the others do.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    NEVER_US,
    Committed,
    Conversation,
    Idempotency,
    Item,
    Location,
    StoredResponse,
    Turn,
    later_end,
)
from smg_storage.sql.operations.write_equality import same_item, same_response


@dataclass(slots=True)
class Growing:
    """A conversation, where its next item goes, and when it is over."""

    record: Conversation
    next_position: int
    ends_us: int


class Growth:
    """Growth of a conversation: `items` are new rows, `links` what is appended to it, in order."""

    __slots__ = ("conversation_id", "ends_us", "items", "links", "now_us")

    def __init__(
        self,
        conversation_id: str,
        links: Sequence[str],
        items: Sequence[Item] = (),
        *,
        now_us: int,
        ends_us: int,
    ) -> None:
        self.conversation_id = conversation_id
        self.links = links
        self.items = items
        self.now_us = now_us
        self.ends_us = ends_us
        """It is not over before that if something is appended; 0: that stays as it is."""


@dataclass(slots=True)
class Seen:
    """Rows that are there, of one tenant, as far as they matter. What is over
    is in `over`, and else missing.
    """

    conversations: dict[str, Growing] = field(default_factory=dict)
    responses: dict[str, StoredResponse] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    linked: dict[tuple[str, str], int] = field(default_factory=dict)
    """The position of (conversation, item)."""
    located: set[str] = field(default_factory=set)
    keys: dict[str, Idempotency] = field(default_factory=dict)
    """Also those that are over."""
    key_responses: dict[str, str] = field(default_factory=dict)
    responses_over: set[str] = field(default_factory=set)
    items_over: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Writes:
    """Writes to be done, in this order."""

    responses_over: list[str] = field(default_factory=list)
    new_responses: list[StoredResponse] = field(default_factory=list)
    replaced: list[StoredResponse] = field(default_factory=list)
    new_items: dict[str, Item] = field(default_factory=dict)
    revived_items: list[Item] = field(default_factory=list)
    """Written over ones that are over."""
    new_refs: dict[str, int] = field(default_factory=dict)
    """How often a new item is linked."""
    used_items: list[str] = field(default_factory=list)
    """Linked once more each time they are in it."""
    links: list[tuple[str, int, str]] = field(default_factory=list)
    """(conversation, position, item)"""
    grown: dict[str, Growing] = field(default_factory=dict)
    locations: list[Location] = field(default_factory=list)
    new_keys: list[tuple[Idempotency, str]] = field(default_factory=list)
    replaced_keys: list[tuple[Idempotency, str]] = field(default_factory=list)


class Plan:
    """The writes of one tenant's turns."""

    def __init__(
        self,
        seen: Seen,
        *,
        now_us: int,
        items_without: Collection[str] = (),
        responses_without: Collection[str] = (),
    ) -> None:
        self._seen = seen
        self._now_us = now_us
        self._items_without = items_without
        self._responses_without = responses_without
        self.writes = Writes()

    def turn(self, turn: Turn) -> Committed:
        """Plan a turn; StoreError if it cannot be, and then nothing of it is planned."""
        found = self._seen.responses.get(turn.response.id)
        if found is not None and same_response(
            found, turn.response, without=self._responses_without
        ):
            return Committed(positions=self._positions_of(turn), again=True)
        self._check_run(found, turn)
        if turn.links and not turn.response.conversation_id:
            raise _missing("a turn links items to no conversation", "")
        growth = Growth(
            turn.response.conversation_id,
            turn.links,
            turn.items,
            now_us=self._now_us,
            ends_us=turn.conversation_expires_us,
        )
        self._check_append(growth)
        self._check_key(turn)
        self._put_response(found, turn)
        positions = self._put_items(growth)
        self._put_locations(turn.locations)
        self._put_key(turn)
        return Committed(positions=positions)

    def append(self, growth: Growth) -> Sequence[int]:
        """Plan that items are kept, and linked; return the positions of the links."""
        self._check_append(growth)
        return self._put_items(growth)

    def _positions_of(self, turn: Turn) -> Sequence[int]:
        keys = ((turn.response.conversation_id, item_id) for item_id in turn.links)
        return tuple(self._seen.linked[key] for key in keys if key in self._seen.linked)

    def _check_run(self, found: StoredResponse | None, turn: Turn) -> None:
        response_id = turn.response.id
        if found is None:
            if turn.token:
                raise _conflict(f"response {response_id} is not there any more")
            return
        if found.status.is_final:
            raise _conflict(f"response {response_id} is final, and another one")
        if found.lease_token != turn.token:
            raise _conflict(f"response {response_id} has another owner")

    def _check_append(self, growth: Growth) -> None:
        conversation_id = growth.conversation_id
        if conversation_id and conversation_id not in self._seen.conversations:
            raise _missing(f"there is no conversation {conversation_id}", conversation_id)
        own: dict[str, Item] = {}
        for item in growth.items:
            found = self._seen.items.get(item.id) or own.get(item.id)
            if found is not None and not same_item(found, item, without=self._items_without):
                raise _conflict(f"item {item.id} is another one")
            own[item.id] = item
        for item_id in growth.links:
            if item_id not in own and item_id not in self._seen.items:
                raise _missing(f"there is no item {item_id}", item_id)

    def _check_key(self, turn: Turn) -> None:
        key = turn.idempotency
        found = self._seen.keys.get(key.key) if key is not None else None
        if key is None or found is None or self._is_over(found.expires_us):
            return
        if found.digest != key.digest:
            raise _conflict("the idempotency key stands for another request")
        if self._seen.key_responses[key.key] not in ("", turn.response.id):
            raise _conflict("the idempotency key stands for another response")

    def _is_over(self, expires_us: int) -> bool:
        return expires_us != NEVER_US and expires_us <= self._now_us

    def _put_response(self, found: StoredResponse | None, turn: Turn) -> None:
        response = turn.response
        if found is not None:
            response = structs.replace(
                response,
                owner=found.owner,
                lease_token=found.lease_token,
                lease_until_us=found.lease_until_us,
                cancel_requested=found.cancel_requested,
                version=found.version + 1,
            )
            self.writes.replaced.append(response)
        else:
            if response.id in self._seen.responses_over:
                self._seen.responses_over.remove(response.id)
                self.writes.responses_over.append(response.id)
            self.writes.new_responses.append(response)
        self._seen.responses[response.id] = response

    def _put_items(self, growth: Growth) -> Sequence[int]:
        for item in growth.items:
            if item.id in self._seen.items:
                continue
            if item.id in self._seen.items_over:
                self.writes.revived_items.append(item)
            else:
                self.writes.new_items[item.id] = item
            self._seen.items[item.id] = item
        return tuple(self._put_link(growth, item_id) for item_id in growth.links)

    def _put_link(self, growth: Growth, item_id: str) -> int:
        conversation_id = growth.conversation_id
        place = self._seen.linked.get((conversation_id, item_id))
        if place is not None:
            return place
        growing = self._seen.conversations[conversation_id]
        place = growing.next_position
        growing.next_position += 1
        growing.ends_us = later_end(growing.ends_us, growth.ends_us)
        self.writes.grown[conversation_id] = growing
        self.writes.links.append((conversation_id, place, item_id))
        self._seen.linked[conversation_id, item_id] = place
        if item_id in self.writes.new_items:
            self.writes.new_refs[item_id] = self.writes.new_refs.get(item_id, 0) + 1
        else:
            self.writes.used_items.append(item_id)
        return place

    def _put_locations(self, locations: Sequence[Location]) -> None:
        for location in locations:
            if location.item_id not in self._seen.located:
                self._seen.located.add(location.item_id)
                self.writes.locations.append(location)

    def _put_key(self, turn: Turn) -> None:
        key = turn.idempotency
        if key is None:
            return
        there = key.key in self._seen.keys
        (self.writes.replaced_keys if there else self.writes.new_keys).append(
            (key, turn.response.id)
        )
        self._seen.keys[key.key] = key
        self._seen.key_responses[key.key] = turn.response.id


def _conflict(message: str) -> StoreError:
    return StoreError(StoreErrorKind.CONFLICT, message)


def _missing(message: str, missing: str) -> StoreError:
    return StoreError(StoreErrorKind.BAD_REFERENCE, message, missing=missing)
