"""Stale absence: how long this node missed the others' removals, and whether it gives way to them.

A removal is remembered for a while only. A node that was away for longer than that may hold what
was removed and forgotten meanwhile; so it is *stale* for a minute: a fresh peer it meets knows
better. Later it is one of them, for there may be no other. What came from a disk grows older until
the first exchange has come to its end, whether the process runs or not.
"""

from typing import Final

STALE_MS: Final = 60_000
"""So long who was away for too long gives way to fresh peers."""


class Absence:
    """Watches the monotonic clock of one node; `removed_keep_ms`: how long removals are remembered."""

    def __init__(self, removed_keep_ms: int, now_ms: int) -> None:
        self._removed_keep_ms: Final = removed_keep_ms
        self._seen_ms = now_ms
        self._stale_until_ms = now_ms
        self._apart_since_ms: int | None = None

    def stale(self, now_ms: int) -> bool:
        """Return whether it has to give way."""
        return now_ms < self._stale_until_ms

    def tick(self, now_ms: int) -> None:
        """Take note that the process runs."""
        self._was_away(now_ms - self._seen_ms, now_ms)
        self._seen_ms = now_ms
        if self._apart_since_ms is not None:
            self._was_away(now_ms - self._apart_since_ms, now_ms)

    def loaded(self, absent_ms: int, now_ms: int) -> None:
        """Learn that what is held is as old as that."""
        self._apart_since_ms = now_ms - absent_ms
        self._was_away(absent_ms, now_ms)

    def met(self) -> None:
        """Learn that an exchange came to its end, or that there is no peer to have one with."""
        self._apart_since_ms = None

    def over(self, now_ms: int) -> None:
        """Learn that this node has given way."""
        self._stale_until_ms = now_ms
        self._apart_since_ms = None

    def _was_away(self, absent_ms: int, now_ms: int) -> None:
        if absent_ms > self._removed_keep_ms:
            self._stale_until_ms = now_ms + STALE_MS
            self._apart_since_ms = None
