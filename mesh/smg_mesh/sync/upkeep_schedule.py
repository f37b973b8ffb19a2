"""Upkeep schedule of documents: soon after a change, when they ask, and now and then all of them.

A few at a time, because the loop that runs this has other work, and never a document twice for one burst
of changes.
"""

from collections.abc import Callable, Sequence
from typing import Final

TEND_SOON_MS: Final = 500
"""After a change: another one may follow, and what it superseded is not urgent."""
TEND_ALL_MS: Final = 30_000
TEND_ALL_COUNT: Final = 8
"""So many documents are looked at every 30 s though nothing changed: for old removals, for a week's age."""
TENDED_AT_ONCE_MAX: Final = 4
"""In one call; the loop turns before the next."""


class Caretaker:
    """Names of documents, and when each is to be looked at."""

    def __init__(self, *, now_ms: Callable[[], int], wake: Callable[[int], None]) -> None:
        self._now_ms: Final = now_ms
        self._wake: Final = wake
        self._due_ms: dict[str, int] = {}
        self._round_ms: int | None = None
        self._next = 0

    def soon(self, name: str) -> None:
        """Look at a document that changed."""
        self.at(name, self._now_ms() + TEND_SOON_MS)

    def at(self, name: str, due_ms: int) -> None:
        """Look at a document then, unless it is to be looked at before."""
        if self._due_ms.get(name, due_ms + 1) > due_ms:
            self._due_ms[name] = due_ms
            self._wake(due_ms)
        self.keep_going()

    def keep_going(self) -> None:
        """Go round every 30 s from now on."""
        if self._round_ms is None:
            self._round_ms = self._now_ms() + TEND_ALL_MS
            self._wake(self._round_ms)

    def round_is_due(self) -> bool:
        """Return whether it is time for those that nothing happened to."""
        return self._round_ms is not None and self._now_ms() >= self._round_ms

    def go_round(self, names: Sequence[str]) -> None:
        """Let the next few of all documents be looked at now; with none there is no next round."""
        now_ms = self._now_ms()
        self._round_ms = now_ms + TEND_ALL_MS if names else None
        for offset in range(min(TEND_ALL_COUNT, len(names))):
            self._due_ms.setdefault(names[(self._next + offset) % len(names)], now_ms)
        self._next = (self._next + TEND_ALL_COUNT) % max(1, len(names))

    def take(self) -> list[str]:
        """Return the documents to look at now, and ask to be called for the others."""
        now_ms = self._now_ms()
        due = sorted((due_ms, name) for name, due_ms in self._due_ms.items() if due_ms <= now_ms)
        taken = [name for _, name in due[:TENDED_AT_ONCE_MAX]]
        for name in taken:
            del self._due_ms[name]
        if self._due_ms:
            self._wake(max(now_ms + 1, min(self._due_ms.values())))
        if self._round_ms is not None:
            self._wake(self._round_ms)
        return taken
