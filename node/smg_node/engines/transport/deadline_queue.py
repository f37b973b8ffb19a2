"""Deadline queue: deadlines of many calls behind a single timer, unsorted until the earliest may be
due. Pure.

Nearly all calls end long before they are late, so they are never sorted: of all only the earliest
time is known, and it may be that of a call that has ended. When it has come, all are looked at, and
the earliest of those that are left is known again: 5,000 calls cost 0.3 ms, no oftener than their
owner asks. Adding and removing are one step in a dictionary each, which every call pays twice.
"""

from math import inf
from typing import Any, Final

TICK_S: Final = 0.1
"""How often is asked who is late; deadlines of answers are minutes, and the engine keeps the exact one."""


class Deadlines:
    """Items, all of one owner's kind, each with the time at which it is due, in seconds of one clock."""

    __slots__ = ("_due", "_soonest_s")

    def __init__(self) -> None:
        self._due: dict[object, float] = {}
        self._soonest_s = inf

    def __len__(self) -> int:
        return len(self._due)

    @property
    def waiting(self) -> bool:
        """Whether `due` has to be asked again. What is added while it is False answers that it is the soonest."""
        return self._soonest_s != inf

    def add(self, item: object, due_s: float) -> bool:
        """Note when `item` is due, instead of what was noted for it before; return whether that may be the soonest."""
        self._due[item] = due_s
        if due_s < self._soonest_s:
            self._soonest_s = due_s
            return True
        return False

    def remove(self, item: object) -> None:
        """Forget `item`; harmless if it was returned or forgotten before."""
        self._due.pop(item, None)

    def items(self) -> list[Any]:
        """Return everything that is noted."""
        return list(self._due)

    def due(self, now_s: float) -> list[Any]:
        """Forget and return what is due, earliest first; nothing is returned too early."""
        if now_s < self._soonest_s and self._due:
            return []
        noted = self._due
        found = [item for item, due_s in noted.items() if due_s <= now_s]
        found.sort(key=noted.__getitem__)
        for item in found:
            del noted[item]
        self._soonest_s = min(noted.values(), default=inf)
        return found
