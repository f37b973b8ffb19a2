"""The newest events of a response under way, as far as somebody here may still need them: pure.

    0 … │ durable, and somebody here is behind │ durable, wanted by nobody │ not in the log yet │
         first                                                      durable                 last

What is not in the log yet is here in any case; what is, for those who follow and have not had it, up to a number of
bytes. Who is further behind reads the log.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.dialects.responses.events.numbered_events import NumberedEvent

EVENT_BYTES: Final = 160
"""What an event takes in memory besides its text: a tuple, a number, and the heads of its strings."""


class Reader:
    """Somebody who follows: `at` is the number of the last event he was given, `waits` whether he waits for the log."""

    __slots__ = ("at", "waits")

    def __init__(self, at: int, *, waits: bool = True) -> None:
        self.at = at
        self.waits = waits


class Tail:
    """Events of one response, in the order of their numbers. `durable` is the last one in the log, -1 before any is."""

    __slots__ = ("_events", "_first", "_kept_max", "_readers", "durable", "kept_bytes", "new_bytes")

    def __init__(self, *, kept_bytes_max: int) -> None:
        self.durable = -1
        self.new_bytes = 0
        """Of events that are not in the log yet."""
        self.kept_bytes = 0
        """Of events that are."""
        self._events: list[NumberedEvent] = []
        self._first = 0
        self._kept_max: Final = kept_bytes_max
        self._readers: Final[list[Reader]] = []

    @property
    def last(self) -> int:
        """The number of the last event that was said, -1 before any was."""
        return self._first + len(self._events) - 1

    @property
    def waited_for(self) -> bool:
        """Whether anybody waits for events to be in the log."""
        return any(reader.waits for reader in self._readers)

    # ── Written ──────────────────────────────────────────────────────────────

    def say(self, events: Sequence[NumberedEvent]) -> int:
        """Take the next events; return their bytes."""
        assert not events or events[0].sequence == self.last + 1, "events follow one another"
        size = _bytes_of(events)
        self._events.extend(events)
        self.new_bytes += size
        return size

    def pieces(self, *, bytes_max: int, pieces_max: int) -> list[list[NumberedEvent]]:
        """Return the oldest events that are not in the log, in pieces that are not larger, unless one event is."""
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
        """Hear that the log has all events up to that one; return the bytes of those it did not have before."""
        assert self.durable < last <= self.last, "what is written was said, and is written once"
        size = _bytes_of(self._events[self.durable + 1 - self._first : last + 1 - self._first])
        self.durable = last
        self.new_bytes -= size
        self.kept_bytes += size
        self._drop()
        return size

    def take_back(self) -> int:
        """Forget what is not in the log: nobody will hear of it. Return its bytes."""
        del self._events[self.durable + 1 - self._first :]
        size, self.new_bytes = self.new_bytes, 0
        return size

    # ── Read ─────────────────────────────────────────────────────────────────

    def join(self, after: int, *, waits: bool = True) -> Reader:
        """Return one more who follows, and has all events up to that number."""
        reader = Reader(after, waits=waits)
        self._readers.append(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """Hear that he follows no more."""
        self._readers.remove(reader)
        self._drop()

    def since(self, after: int, *, upto: int) -> Sequence[NumberedEvent] | None:
        """Return the events after one number, up to another one; None if the first of them is not here any more."""
        if after + 1 < self._first:
            return None
        return self._events[after + 1 - self._first : max(upto + 1 - self._first, 0)]

    def _drop(self) -> None:
        """Forget what is in the log and nobody waits for, and the oldest of what is too much."""
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
    return sum(len(event.data) for event in events) + EVENT_BYTES * len(events)
