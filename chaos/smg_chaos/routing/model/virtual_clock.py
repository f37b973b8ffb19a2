"""Virtual time, in seconds, and what is still to happen."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

Deed: TypeAlias = Callable[..., None]


class Agenda:
    """Deeds in order of time; of one moment in the order of planning."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._planned = 0
        self._entries: list[tuple[float, int, Deed, tuple[object, ...]]] = []

    def at(self, due_s: float, deed: Deed, *arguments: object) -> None:
        """Do something at a time; now, if that is past."""
        self._planned += 1
        heappush(self._entries, (max(due_s, self.now_s), self._planned, deed, arguments))

    def after(self, seconds: float, deed: Deed, *arguments: object) -> None:
        """Do something so much later."""
        self.at(self.now_s + seconds, deed, *arguments)

    def run(self, until_s: float) -> None:
        """Let everything happen up to a time."""
        entries = self._entries
        while entries and entries[0][0] <= until_s:
            self.now_s, _, deed, arguments = heappop(entries)
            deed(*arguments)
        self.now_s = max(self.now_s, until_s)
