"""Hint queue: peers' prefix hints on their way into the index, in order and in bounded slices.

A few hints go in where they come. A worker's whole cache, which comes in one piece when a node joins, goes in by
slices, between which the node does other things. What comes meanwhile waits behind it, and what is too much is
dropped: the index knows less then, and nothing that is not so.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

SLICE: Final = 2_048
"""Hashes put into the index at once: at most 2 ms."""
WAITING_MAX: Final = 2_000_000
"""Hashes that may wait; eight bytes each as a worker's whole cache, more as single changes."""

What: TypeAlias = Literal["tell", "untell", "untell_all", "doubt_told", "assume"]


class HintedIndex(Protocol):
    """The part of a prefix index that takes peers' hints."""

    def tell(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        """Record a peer's statement that a worker has these."""
        ...

    def untell(self, worker: str, hashes: Sequence[int]) -> None:
        """Withdraw that statement."""
        ...

    def untell_all(self, worker: str) -> None:
        """Withdraw all that a peer stated of a worker."""
        ...

    def doubt_told(self, worker: str, now_s: float) -> None:
        """Turn what a peer stated of a worker into guesses."""
        ...

    def assume(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        """Guess for a while that a worker has these."""
        ...


@dataclass(slots=True)
class _Item:
    """One operation, and how much of it is done."""

    what: What
    worker: str
    hashes: Sequence[int]
    at: int = 0


class HintQueue:
    """Queue of hints into `index`; hints of workers that are not `known` any more are dropped."""

    def __init__(
        self, index: HintedIndex, *, known: Callable[[str], bool], monotonic_s: Callable[[], float]
    ) -> None:
        self._index: Final = index
        self._known: Final = known
        self._monotonic_s: Final = monotonic_s
        self._items: Final[deque[_Item]] = deque()
        self.waiting = 0
        """Hashes that are to be put in or taken out."""
        self.applied = 0
        self.dropped = 0

    @property
    def empty(self) -> bool:
        """Whether all that came is done."""
        return not self._items

    def put(self, what: What, worker: str, hashes: Sequence[int] = ()) -> None:
        """Apply a hint: at once if it is small and nothing waits, else in its turn."""
        if self._items or len(hashes) > SLICE:
            if self.waiting + len(hashes) > WAITING_MAX:
                self.dropped += len(hashes)
                return
            self.waiting += len(hashes)
            self._items.append(_Item(what, worker, hashes))
        else:
            self._do(what, worker, hashes)

    def work(self) -> bool:
        """Do a slice of what waits; return whether there is more."""
        room = SLICE
        while self._items and room > 0:
            item = self._items[0]
            some = item.hashes[item.at : item.at + room]
            self._do(item.what, item.worker, some)
            item.at += len(some)
            self.waiting -= len(some)
            # Something that is done at once is work too, or a queue full of it would be one slice.
            room -= len(some) or 16
            if item.at >= len(item.hashes):
                self._items.popleft()
        return bool(self._items)

    def _do(self, what: What, worker: str, hashes: Sequence[int]) -> None:
        if what == "untell_all":
            self._index.untell_all(worker)
        elif what == "doubt_told":
            self._index.doubt_told(worker, self._monotonic_s())
        elif not self._known(worker):
            self.dropped += len(hashes)
        elif what == "untell":
            self._index.untell(worker, hashes)
        elif what == "tell":
            self._index.tell(worker, hashes, self._monotonic_s())
        else:
            self._index.assume(worker, hashes, self._monotonic_s())
        self.applied += len(hashes)
