"""Index observer: reports confirmed blocks that a worker gained or lost, whatever the rank and
tier. Pure.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from smg_node.routing.kv_index.holder_bits import Holders, bits_of

Heard: TypeAlias = Callable[[str, int], object]
"""Called with a worker and a hash."""


class OnCleared(Protocol):
    """Called with a worker that lost all blocks, or has them `perhaps`: this node does not follow
    it any more.
    """

    def __call__(self, worker: str, /, *, perhaps: bool) -> object:
        """Take that in."""
        ...


def _nothing(*_: object, **__: object) -> None:
    """Do not watch."""


class Watch:
    """Observer of an index. `on` is whether there is one: without, changes need not be worked
    out.
    """

    __slots__ = ("_holders", "_on_add", "_on_clear", "_on_remove", "on")

    def __init__(self, holders: Holders) -> None:
        self._holders = holders
        self.on = False
        self._on_add: Heard = _nothing
        self._on_remove: Heard = _nothing
        self._on_clear: OnCleared = _nothing

    def begin(self, on_add: Heard, on_remove: Heard, on_clear: OnCleared) -> None:
        """Call these from now on."""
        self.on = True
        self._on_add, self._on_remove, self._on_clear = on_add, on_remove, on_clear

    def changed(self, hashes: Iterable[int], before: int, after: int) -> None:
        """Report that these blocks had the holders of one mask, and have those of another."""
        changed = (before ^ after) & self._holders.confirmed
        while changed:
            holder = self._holders.at(next(bits_of(changed)))
            own = holder.confirmed
            changed &= ~own
            had, has = bool(before & own), bool(after & own)
            if had != has:
                say = self._on_add if has else self._on_remove
                for one in hashes:
                    say(holder.worker, one)

    def removed(self, worker: str, hashes: Iterable[int]) -> None:
        """Report that a worker lost these blocks."""
        for one in hashes:
            self._on_remove(worker, one)

    def cleared(self, worker: str, *, perhaps: bool = False) -> None:
        """Report that a worker lost all blocks, or is not followed here any more and has them
        `perhaps`.
        """
        self._on_clear(worker, perhaps=perhaps)
