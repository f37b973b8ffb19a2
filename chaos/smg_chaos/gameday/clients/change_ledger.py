"""Change ledger: operators' changes in order, and the values that a node may report at a given
moment. Pure.

A change that was acknowledged longer ago than `grace_s` is everywhere: from then on an older value
is wrong. Younger ones are still propagating, and those still being made may count already, so each
of them is right as well. Times are arguments.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

_ANSWER_MAX_S: Final = 60.0
"""Who was asked longer ago has been given up."""


@dataclass(slots=True)
class _Change:
    value: Any
    done_s: float | None = None


class Ledger:
    """The changes by name of what they change. `grace_s` is how long one may take to be known
    everywhere.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._changes: dict[str, deque[_Change]] = {}

    def know(self, name: str, value: Any, now_s: float) -> None:
        """Record the value before any change."""
        assert name not in self._changes
        self._changes[name] = deque([_Change(value, now_s)])

    def begin(self, name: str, value: Any) -> None:
        """Record the start of a change to a value; one change of a name at a time."""
        changes = self._changes[name]
        assert changes[-1].done_s is not None
        changes.append(_Change(value))

    def done(self, name: str, now_s: float) -> None:
        """Record that the change begun last was acknowledged."""
        changes = self._changes[name]
        assert changes[-1].done_s is None
        changes[-1].done_s = now_s
        while len(changes) > 1 and self._is_known(changes[1], now_s - _ANSWER_MAX_S):
            changes.popleft()

    def undone(self, name: str) -> None:
        """Record that the change begun last was refused."""
        assert self._changes[name][-1].done_s is None
        self._changes[name].pop()

    def allows(self, name: str, value: Any, asked_s: float) -> bool:
        """Return whether a node may report this value when it was asked at that moment."""
        known = [*self._changes[name]]
        while len(known) > 1 and self._is_known(known[1], asked_s):
            known.pop(0)
        return any(change.value == value for change in known)

    def _is_known(self, change: _Change, now_s: float) -> bool:
        return change.done_s is not None and change.done_s + self._grace_s <= now_s
