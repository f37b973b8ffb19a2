"""Row store: all rows of a store in memory, and the room they take.

Rows belong to threads. A thread is forgotten whole, because half a chain is worth nothing: when it has not been
written to for long, and when room is needed for others, the one that was written to longest ago first. What cannot
find room beside the threads that it concerns is refused before anything was changed. An item that a conversation of
another thread has too goes over to that thread.
"""

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import Final, cast

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import thread_of
from smg_storage.memory.rows import (
    ConversationRow,
    ItemRow,
    Key,
    KeyRow,
    Kind,
    LocationRow,
    LogRow,
    ResponseRow,
    Row,
    Tally,
    Thread,
)
from smg_storage.memory.sorted_list import Ordered
from smg_storage.options import Bounds
from smg_storage.records import NEVER_US

_COUNTS_AS_ITEM: Final = (Kind.ITEM, Kind.LOCATION)


class RowStore:
    """Rows of one store. Whatever changes them goes through here, so that the sums stay right."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.conversations: dict[Key, ConversationRow] = {}
        self.items: dict[Key, ItemRow] = {}
        self.responses: dict[Key, ResponseRow] = {}
        self.locations: dict[Key, LocationRow] = {}
        self.logs: dict[Key, LogRow] = {}
        self.keys: dict[Key, KeyRow] = {}
        # Each table holds rows of its own kind; what is done to all of them alike knows them as rows.
        self._tables: dict[Kind, dict[Key, Row]] = {
            Kind.CONVERSATION: cast(dict[Key, Row], self.conversations),
            Kind.ITEM: cast(dict[Key, Row], self.items),
            Kind.RESPONSE: cast(dict[Key, Row], self.responses),
            Kind.LOCATION: cast(dict[Key, Row], self.locations),
            Kind.LOG: cast(dict[Key, Row], self.logs),
            Kind.KEY: cast(dict[Key, Row], self.keys),
        }
        self.persons: dict[Key, Ordered[tuple[int, str]]] = {}
        self.runs: Ordered[tuple[int, str, str]] = Ordered()
        self.tenants: dict[str, Tally] = {}
        self._threads: OrderedDict[Key, Thread] = OrderedDict()
        self._endings: Ordered[tuple[int, str, Key]] = Ordered()
        self.bytes = 0
        self._seen_us = 0
        self._items = 0
        self._responses = 0

    # ── Room ─────────────────────────────────────────────────────────────────

    def make_room(
        self,
        now_us: int,
        threads: Iterable[Key],
        *,
        bytes_more: int,
        items_more: int = 0,
        responses_more: int = 0,
    ) -> None:
        """Forget the oldest threads, but none of these, until so much more fits; TOO_LARGE if it never will."""
        kept = dict.fromkeys(threads)
        self._seen_us = now_us
        for thread in kept:
            self._touch(thread, now_us)
        own = [self._threads[thread] for thread in kept]
        fits = (
            sum(thread.bytes for thread in own) + bytes_more <= self._bounds.bytes_max
            and sum(thread.items for thread in own) + items_more <= self._bounds.items_max
            and sum(thread.responses for thread in own) + responses_more
            <= self._bounds.responses_max
        )
        while fits and not self._fits(bytes_more, items_more, responses_more):
            oldest = next(iter(self._threads))
            fits = oldest not in kept
            if fits:
                self._forget_thread(oldest)
        if not fits:
            self._drop_if_empty(kept)
            raise StoreError(StoreErrorKind.TOO_LARGE, "history in memory has no room for it")

    def let_go(self, now_us: int) -> None:
        """Forget the threads that have not been written to for too long."""
        while self._threads:
            oldest = next(iter(self._threads))
            if self._threads[oldest].touched_us + self._bounds.age_max_s * 1_000_000 > now_us:
                return
            self._forget_thread(oldest)

    def purge(self, now_us: int, batch: int) -> int:
        """Forget what is over, the oldest first, at most so many; return how many."""
        over = [
            ending
            for ending in islice(self._endings.ascending(), max(0, batch))
            if ending[0] <= now_us
        ]
        for _, kind, key in over:
            self.forget(Kind(kind), key)
        return len(over)

    def _fits(self, bytes_more: int, items_more: int, responses_more: int) -> bool:
        return (
            self.bytes + bytes_more <= self._bounds.bytes_max
            and self._items + items_more <= self._bounds.items_max
            and self._responses + responses_more <= self._bounds.responses_max
        )

    def _touch(self, key: Key, now_us: int) -> Thread:
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = Thread(now_us)
        thread.touched_us = now_us
        self._threads.move_to_end(key)
        return thread

    def _drop_if_empty(self, keys: Iterable[Key]) -> None:
        for key in keys:
            thread = self._threads.get(key)
            if thread is not None and not thread.members:
                del self._threads[key]

    def _forget_thread(self, key: Key) -> None:
        # Conversations first: an item that another thread has too goes over to it as soon as it is taken out here.
        members = list(self._threads[key].members)
        for kind, member in sorted(members, key=lambda each: each[0] is not Kind.CONVERSATION):
            self.forget(kind, member)
        self._threads.pop(key, None)

    # ── Rows ─────────────────────────────────────────────────────────────────

    def add(self, kind: Kind, key: Key, row: Row) -> None:
        """Add a row that is not there."""
        table = self._tables[kind]
        assert key not in table
        table[key] = row
        self._join(kind, key, row)
        if row.expires_us != NEVER_US:
            self._endings.add((row.expires_us, kind.value, key))

    def weigh(self, row: Row, bytes_more: int) -> None:
        """Note that a row has become longer, or shorter."""
        row.bytes += bytes_more
        self.bytes += bytes_more
        self._threads[row.thread].bytes += bytes_more
        self.tenants[row.thread[0]].bytes += bytes_more

    def end_at(self, kind: Kind, key: Key, expires_us: int) -> None:
        """Say when a row is over."""
        row = self._tables[kind][key]
        if row.expires_us != NEVER_US:
            self._endings.discard((row.expires_us, kind.value, key))
        row.expires_us = expires_us
        if expires_us != NEVER_US:
            self._endings.add((expires_us, kind.value, key))

    def move_item(self, key: Key, thread: Key) -> None:
        """Let an item go with another thread from now on."""
        row = self.items[key]
        if row.thread != thread:
            self._leave(Kind.ITEM, key, row)
            row.thread = thread
            self._join(Kind.ITEM, key, row)

    def forget(self, kind: Kind, key: Key) -> None:
        """Take out a row with all that only made sense with it; nothing happens if it is not there."""
        row = self._tables[kind].pop(key, None)
        if row is None:
            return
        if row.expires_us != NEVER_US:
            self._endings.discard((row.expires_us, kind.value, key))
        self._leave(kind, key, row)
        if isinstance(row, ConversationRow):
            for item_id in list(row.position_of):
                self._unlinked(key, item_id)
        elif isinstance(row, ItemRow):
            for conversation_id in row.conversations:
                self._close_up(self.conversations[key[0], conversation_id], key[1])
        elif isinstance(row, ResponseRow):
            self._forget_around(key, row)

    def unlink(self, conversation: Key, item_id: str) -> bool:
        """Take an item out of a conversation, and forget it if it is in no other; return whether it was there."""
        row = self.conversations[conversation]
        if item_id not in row.position_of:
            return False
        self._close_up(row, item_id)
        self._unlinked(conversation, item_id)
        return True

    def index(self, key: Key, row: ResponseRow) -> None:
        """Make a response findable by person, and by lease while it runs in the background."""
        record = row.record
        if record.safety_identifier:
            person = key[0], record.safety_identifier
            self.persons.setdefault(person, Ordered()).add((record.created_us, record.id))
        if record.background and not record.status.is_final:
            self.runs.add((record.lease_until_us, *key))

    def unindex(self, key: Key, row: ResponseRow) -> None:
        """Undo `index`: before a response changes, and when it goes."""
        record = row.record
        person = key[0], record.safety_identifier
        if person in self.persons:
            self.persons[person].discard((record.created_us, record.id))
            if not self.persons[person]:
                del self.persons[person]
        self.runs.discard((record.lease_until_us, *key))

    def forget_locations(self, key: Key, row: ResponseRow) -> None:
        """Take out where a response has its items."""
        for item_id in row.located:
            self.forget(Kind.LOCATION, (key[0], item_id))
        row.located = ()

    def _forget_around(self, key: Key, row: ResponseRow) -> None:
        self.unindex(key, row)
        self.forget_locations(key, row)
        self.forget(Kind.LOG, key)

    def _unlinked(self, conversation: Key, item_id: str) -> None:
        key = conversation[0], item_id
        item = self.items[key]
        del item.conversations[conversation[1]]
        if not item.conversations:
            self.forget(Kind.ITEM, key)
        elif item.thread == home_of(conversation):
            left = next(reversed(item.conversations))
            self.move_item(key, home_of((key[0], left)))

    @staticmethod
    def _close_up(row: ConversationRow, item_id: str) -> None:
        position = row.position_of.pop(item_id)
        row.positions.discard(position)
        del row.item_at[position]

    def _join(self, kind: Kind, key: Key, row: Row) -> None:
        # What was there before may have been the last of its thread, which is gone with it.
        thread = self._threads.setdefault(row.thread, Thread(self._seen_us))
        thread.members[kind, key] = None
        self._count(kind, row, thread, 1)

    def _leave(self, kind: Kind, key: Key, row: Row) -> None:
        thread = self._threads[row.thread]
        del thread.members[kind, key]
        self._count(kind, row, thread, -1)
        self._drop_if_empty([row.thread])

    def _count(self, kind: Kind, row: Row, thread: Thread, sign: int) -> None:
        thread.bytes += sign * row.bytes
        self.bytes += sign * row.bytes
        if kind in _COUNTS_AS_ITEM:
            thread.items += sign
            self._items += sign
        if kind is Kind.RESPONSE:
            thread.responses += sign
            self._responses += sign
        self._count_for(row.thread[0], kind, row.bytes, sign)

    def _count_for(self, tenant: str, kind: Kind, size: int, sign: int) -> None:
        tally = self.tenants.setdefault(tenant, Tally())
        tally.rows += sign
        tally.bytes += sign * size
        tally.conversations += sign * (kind is Kind.CONVERSATION)
        tally.items += sign * (kind is Kind.ITEM)
        tally.responses += sign * (kind is Kind.RESPONSE)
        if not tally.rows:
            del self.tenants[tenant]


def home_of(key: Key) -> Key:
    """Return the thread that something belongs to by its id."""
    return key[0], thread_of(key[1])
