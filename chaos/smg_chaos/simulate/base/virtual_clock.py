"""Virtual clock and agenda: a heap of what is still to happen, by due time and order of planning.

Time is whole microseconds since the world began, and moves only when the next entry is taken. Entries
are plain tuples, `(due_us, number, kind, whose, x, y)`; the number breaks ties in the order of planning,
so one seed gives one order.
"""

from collections.abc import Callable
from heapq import heappush
from typing import Any, Final, TypeAlias

DATAGRAM: Final = 0
"""A datagram reaches a host: (host, bytes, sender's address)."""
RIGHTS: Final = -1
"""A datagram of the other kind, about rights, does: (host, bytes, sender's address)."""
TIMER: Final = 1
"""A core's timer is due: (node, timer, None)."""
ARRIVAL: Final = 2
"""Something came over TCP: (node, deed, arguments); waits in the socket of a stopped node."""
CALL: Final = 3
"""A node's driver wanted to do something now: (node, deed, arguments); waits for a stopped node."""
DEED: Final = 4
"""The world does something: (None, deed, arguments)."""

Entry: TypeAlias = tuple[int, int, int, Any, Any, Any]
Deed: TypeAlias = Callable[..., None]

MS: Final = 1_000
SECOND: Final = 1_000_000


class Agenda:
    """A heap of entries and the time of the one that was taken last."""

    __slots__ = ("entries", "now_us", "planned")

    def __init__(self) -> None:
        self.now_us = 0
        self.planned = 0
        self.entries: list[Entry] = []

    def plan(self, due_us: int, kind: int, whose: object, x: object, y: object = None) -> None:
        """Add an entry; what should have been done already is done next."""
        self.planned = number = self.planned + 1
        heappush(self.entries, (max(due_us, self.now_us), number, kind, whose, x, y))

    def deed(self, due_us: int, deed: Deed, *arguments: object) -> None:
        """Let the world do something at `due_us`."""
        self.plan(due_us, DEED, None, deed, arguments)
