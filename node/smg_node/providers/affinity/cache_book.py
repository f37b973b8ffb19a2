"""Cache book: which beginning lies in which account's cache, until when, and how sure that is. Pure.

    beginning (hash of its last block) → scope (account, region, model, and key where caches are keys') → state, end

A scope's entry is replaced by what is known later; the one whose end is over is as good as none. Of more entries than
the book may have, those that were written first go: they end first, but for the few that live for an hour.

What is written here is told to `share`, and what others have written is `heard`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol

import msgspec

ENTRIES_MAX: Final = 100_000
REFRESHES_PER_LIFE: Final = 8
"""A use that puts an end off is shared at most so often in a life: it costs a row."""


class State(IntEnum):
    """How sure it is that a vendor has a beginning.

    `SEEN` was sent and is not cached, as nobody asked for it. `DOUBTED` was sent anew after it was found missing.
    """

    SEEN = 0
    DOUBTED = 1
    SENT = 2
    CONFIRMED = 3


BELIEF: Final[Mapping[State, float]] = {
    State.SEEN: 0.0,
    State.DOUBTED: 0.35,
    State.SENT: 0.7,
    State.CONFIRMED: 1.0,
}
"""The probability that it is read, by state."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One beginning in one scope. Times are wall-clock milliseconds."""

    scope: int
    state: State
    until_ms: int
    life_ms: int


class Found(msgspec.Struct, frozen=True, gc=False):
    """A beginning of a prompt that a scope has: its hash, how many bytes it is, and the scope's entry."""

    hash: int
    size_bytes: int
    entry: Entry

    @property
    def belief(self) -> float:
        """The probability that it is read."""
        return BELIEF[self.entry.state]


class Share(Protocol):
    """Where entries go that others should know."""

    def put(self, beginning: int, entry: Entry) -> None:
        """Let all have an entry."""
        ...

    def remove(self, beginning: int, scope: int) -> None:
        """Let none have it any more."""
        ...


class CacheBook:
    """The entries of one process. `share` is told of what is written here; None where there is nobody."""

    def __init__(self, share: Share | None = None, *, entries_max: int = ENTRIES_MAX) -> None:
        self._share = share
        self._entries_max = entries_max
        self._held: dict[int, tuple[Entry, ...]] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many entries there are; some may be over."""
        return self._count

    # ── Reading ──────────────────────────────────────────────────────────────

    def among(
        self, beginnings: Iterable[tuple[int, int]], now_ms: int
    ) -> Mapping[int, Sequence[Found]]:
        """Return what each scope has of these beginnings (hash, bytes), in their order; scopes without are left out."""
        held, found = self._held, dict[int, list[Found]]()
        for beginning, size_bytes in beginnings:
            for entry in held.get(beginning, ()):
                if entry.until_ms > now_ms:
                    found.setdefault(entry.scope, []).append(Found(beginning, size_bytes, entry))
        return found

    def get(self, beginning: int, scope: int, now_ms: int) -> Entry | None:
        """Return the entry of a beginning; None where there is none, or it is over."""
        for entry in self._held.get(beginning, ()):
            if entry.scope == scope:
                return entry if entry.until_ms > now_ms else None
        return None

    def all(self) -> Iterator[tuple[int, Entry]]:
        """Return all entries, those that were written first first."""
        return ((beginning, one) for beginning, held in self._held.items() for one in held)

    # ── Writing ──────────────────────────────────────────────────────────────

    def note(
        self, beginning: int, scope: int, state: State, *, life_ms: int, now_ms: int, shared: bool
    ) -> None:
        """Write that a scope has a beginning from now on; `shared` if others should know."""
        before = self.get(beginning, scope, now_ms)
        if before is not None:
            life_ms = max(life_ms, before.until_ms - now_ms)
        entry = Entry(scope, state, now_ms + life_ms, life_ms)
        self._put(beginning, entry)
        if shared and self._share is not None:
            self._share.put(beginning, entry)

    def refresh(self, beginning: int, scope: int, state: State, *, now_ms: int) -> None:
        """Begin an entry's life anew, as a read does, and take over what is known of it now."""
        before = self.get(beginning, scope, now_ms)
        if before is None:
            return
        since_ms = now_ms - (before.until_ms - before.life_ms)
        if state == before.state and since_ms < before.life_ms // REFRESHES_PER_LIFE:
            return
        self.note(beginning, scope, state, life_ms=before.life_ms, now_ms=now_ms, shared=True)

    def forget(self, beginning: int, scope: int) -> None:
        """Take an entry away, here and everywhere."""
        if self._drop(beginning, scope) and self._share is not None:
            self._share.remove(beginning, scope)

    # ── What others have written ─────────────────────────────────────────────

    def heard(self, beginning: int, entry: Entry) -> None:
        """Take in an entry of others."""
        self._put(beginning, entry)

    def lost(self, beginning: int, scope: int) -> None:
        """Take in that others have taken an entry away."""
        self._drop(beginning, scope)

    def _put(self, beginning: int, entry: Entry) -> None:
        # Taken out first, so that what is written last stands last.
        held = self._held.pop(beginning, ())
        kept = tuple(one for one in held if one.scope != entry.scope)
        self._held[beginning] = (*kept, entry)
        self._count += len(kept) + 1 - len(held)
        while self._count > self._entries_max:
            first = next(iter(self._held))
            self._count -= len(self._held.pop(first))

    def _drop(self, beginning: int, scope: int) -> bool:
        held = self._held.get(beginning, ())
        kept = tuple(one for one in held if one.scope != scope)
        if len(kept) == len(held):
            return False
        self._count -= 1
        if kept:
            self._held[beginning] = kept
        else:
            del self._held[beginning]
        return True

    def tidy(self, now_ms: int, *, at_most: int = 64) -> None:
        """Drop entries that are over, of those that were written first; cheap, and done with each request."""
        for _ in range(at_most):
            first = next(iter(self._held), None)
            if first is None or any(one.until_ms > now_ms for one in self._held[first]):
                return
            self._count -= len(self._held.pop(first))
