"""Virtual clock, in seconds, with an agenda of scheduled actions."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

Deed: TypeAlias = Callable[..., None]


class Agenda:
    """Actions in order of time; at equal times in the order of scheduling."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._planned = 0
        self._entries: list[tuple[float, int, Deed, tuple[object, ...]]] = []

    def at(self, due_s: float, deed: Deed, *arguments: object) -> None:
        """Schedule an action for a time; now, if that is past."""
        self._planned += 1
        heappush(self._entries, (max(due_s, self.now_s), self._planned, deed, arguments))

    def after(self, seconds: float, deed: Deed, *arguments: object) -> None:
        """Schedule an action after a delay."""
        self.at(self.now_s + seconds, deed, *arguments)

    def run(self, until_s: float) -> None:
        """Run all actions due up to a time."""
        entries = self._entries
        while entries and entries[0][0] <= until_s:
            self.now_s, _, deed, arguments = heappop(entries)
            deed(*arguments)
        self.now_s = max(self.now_s, until_s)
