"""Key book of an owner: what it keeps of each key that is asked for, and when it looks at it again.

Looking costs, and most keys need nothing at most times: so each says when it is due, and what happens to it
meanwhile (a vote, an ask) lets it be due sooner.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Final

from smg_mesh.escrow.limit_model import Life, slot_of
from smg_mesh.escrow.owning.pool_customer import Customer
from smg_mesh.escrow.owning.window_pool import Pool
from smg_mesh.escrow.spending.visited_windows import Visited

NEVER_MS: Final = 1 << 62


class Book:
    """Book of one key."""

    __slots__ = ("demands", "due_ms", "forgotten", "heard_ms", "key", "pools", "slot", "sweep_ms")

    def __init__(self, key: str, forgotten: Visited) -> None:
        self.key = key
        self.slot = slot_of(key)
        self.pools: dict[tuple[int, int], Pool] = {}
        """(window, term)"""
        self.demands: dict[Life, Customer] = {}
        self.forgotten = forgotten
        self.heard_ms = 0
        self.due_ms = NEVER_MS
        """When it must be looked at again."""
        self.sweep_ms = 0
        """When one of its windows is to be audited or forgotten (wall clock)."""


class Agenda:
    """Agenda of books that are due, the soonest first. A book that is due sooner than it was is in
    it twice: the later one is void.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Book]] = []
        self._stirred = count()

    def stir(self, book: Book, due_ms: int) -> None:
        """Let a book be due then, or sooner."""
        if due_ms < book.due_ms:
            book.due_ms = due_ms
            heappush(self._heap, (due_ms, next(self._stirred), book))

    def due(self, now_ms: int) -> Iterator[Book]:
        """Yield what is due, taken out; what is due again at once is yielded again."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            due_ms, _, book = heappop(heap)
            if due_ms == book.due_ms:
                book.due_ms = NEVER_MS
                yield book

    def next_ms(self) -> int | None:
        """Return when something is due, perhaps a little too soon; None if nothing is."""
        return self._heap[0][0] if self._heap else None
