"""Event tail: buffer of a run's newest events, for followers and the next log write. Pure.

    0 … │ durable, a follower is behind        │ durable, no follower     │ not in the log yet │
         first                                                      durable                 last

Events that are not in the log yet are always here; logged ones only for followers that have not had
them, up to a number of bytes. A follower that is further behind reads the log.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.dialects.responses.events.numbered_events import NumberedEvent

EVENT_BYTES: Final = 160
"""What an event takes in memory besides its text: a tuple, a number, and the heads of its strings."""


class Reader:
    """A follower: `at` is the number of the last event it was given, `waits` whether it waits for
    the log.
    """

    __slots__ = ("at", "waits")

    def __init__(self, at: int, *, waits: bool = True) -> None:
        self.at = at
        self.waits = waits


class Tail:
    """Events of one response, in the order of their numbers. `durable` is the last one in the log,
    -1 if none is.
    """

    __slots__ = (
        "_events",
        "_first",
        "_kept_max",
        "_readers",
        "durable",
        "kept_bytes",
        "last",
        "new_bytes",
    )

    def __init__(self, *, kept_bytes_max: int) -> None:
        self.durable = -1
        self.last = -1
        """Number of the last event, -1 before the first."""
        self.new_bytes = 0
        """Of events that are not in the log yet."""
        self.kept_bytes = 0
        """Of events that are."""
        self._events: list[NumberedEvent] = []
        self._first = 0
        self._kept_max: Final = kept_bytes_max
        self._readers: Final[list[Reader]] = []

    @property
    def waited_for(self) -> bool:
        """Whether a follower waits for events to be in the log."""
        return any(reader.waits for reader in self._readers)

    # ── Written ──────────────────────────────────────────────────────────────

    def say(self, events: Sequence[NumberedEvent]) -> int:
        """Append the next events; return their bytes."""
        if not events:
            return 0
        assert events[0].sequence == self.last + 1, "events follow one another"
        self.last = events[-1].sequence
        size = _bytes_of(events)
        self._events.extend(events)
        self.new_bytes += size
        return size

    def pieces(self, *, bytes_max: int, pieces_max: int) -> list[list[NumberedEvent]]:
        """Return the oldest events that are not in the log, in batches of limited bytes or one
        event each.
        """
        pieces: list[list[NumberedEvent]] = []
        size = bytes_max
        for event in self._events[self.durable + 1 - self._first :]:
            if size + len(event.data) >= bytes_max:
                if len(pieces) == pieces_max:
                    break
                pieces.append([])
                size = 0
            pieces[-1].append(event)
            size += len(event.data) + 1
        return pieces

    def written(self, last: int) -> int:
        """Record that the log has all events up to that number; return the bytes of the newly
        logged ones.
        """
        assert self.durable < last <= self.last, "what is written was said, and is written once"
        size = _bytes_of(self._events[self.durable + 1 - self._first : last + 1 - self._first])
        self.durable = last
        self.new_bytes -= size
        self.kept_bytes += size
        self._drop()
        return size

    def take_back(self) -> int:
        """Drop events that are not in the log and will not be sent. Return their bytes."""
        del self._events[self.durable + 1 - self._first :]
        self.last = self.durable
        size, self.new_bytes = self.new_bytes, 0
        return size

    # ── Read ─────────────────────────────────────────────────────────────────

    def join(self, after: int, *, waits: bool = True) -> Reader:
        """Return a new follower that has all events up to that number."""
        reader = Reader(after, waits=waits)
        self._readers.append(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """Remove a follower."""
        self._readers.remove(reader)
        self._drop()

    def since(self, after: int, *, upto: int) -> Sequence[NumberedEvent] | None:
        """Return the events after one number, up to another one; None if the first of them is not
        here any more.
        """
        if after + 1 < self._first:
            return None
        return self._events[after + 1 - self._first : max(upto + 1 - self._first, 0)]

    def _drop(self) -> None:
        """Drop events that are logged and not needed by a follower, and the oldest ones over the
        limit.
        """
        wanted = min((reader.at for reader in self._readers), default=self.durable)
        count, size = 0, self.kept_bytes
        for event in self._events:
            number = event.sequence
            if number > self.durable or (number > wanted and size <= self._kept_max):
                break
            size -= len(event.data) + EVENT_BYTES
            count += 1
        del self._events[:count]
        self._first += count
        self.kept_bytes = size


def _bytes_of(events: Sequence[NumberedEvent]) -> int:
    size = EVENT_BYTES * len(events)
    # Nearly always it is one: a loop costs half of what a sum of a generator does.
    for event in events:
        size += len(event.data)
    return size
