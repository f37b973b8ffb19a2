"""Orphan blocks: engine blocks whose parent is not known yet, kept a little in case it comes later.
Pure.

Whatever is removed while it waits comes back as a block that is not held, for the sake of what follows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_node.core.generation.request import TokenIds

PARKED_MAX: Final = 1_000
PARKED_S: Final = 5.0


@dataclass(slots=True)
class Arrival:
    """One engine block on its way into a tree. `held`: it was not removed since."""

    name: int
    ids: TokenIds
    plain: bool
    media: Sequence[tuple[str, int]] = ()
    held: bool = True


@dataclass(slots=True)
class Arrivals:
    """Engine blocks, each the parent of the next, at one distance."""

    blocks: Sequence[Arrival]
    distance: int
    parent: int = 0
    until_s: float = 0.0
    names: frozenset[int] = field(default=frozenset())


class Parked:
    """Blocks that wait for their parents, by the parents' names; at most `blocks_max` blocks, each
    for `wait_s`.
    """

    def __init__(self, *, blocks_max: int = PARKED_MAX, wait_s: float = PARKED_S) -> None:
        self._blocks_max = blocks_max
        self._wait_s = wait_s
        self._by_parent: dict[int, list[Arrivals]] = {}
        self._by_name: dict[int, list[Arrivals]] = {}
        self._count = 0
        self._next_s = float("inf")
        """No run is due before."""

    def __len__(self) -> int:
        return self._count

    def park(self, parent: int, arrivals: Arrivals, now_s: float) -> bool:
        """Keep blocks until their parent comes; return whether there was room."""
        if self._count + len(arrivals.blocks) > self._blocks_max:
            return False
        arrivals.parent, arrivals.until_s = parent, now_s + self._wait_s
        self._next_s = min(self._next_s, arrivals.until_s)
        arrivals.names = frozenset(one.name for one in arrivals.blocks)
        self._count += len(arrivals.blocks)
        self._by_parent.setdefault(parent, []).append(arrivals)
        for one in arrivals.blocks:
            waiting = self._by_name.setdefault(one.name, [])
            if not waiting or waiting[-1] is not arrivals:
                waiting.append(arrivals)
        return True

    def take(self, parent: int) -> Sequence[Arrivals]:
        """Return what waited for a parent, in order; it waits no longer."""
        taken = self._by_parent.pop(parent, [])
        for arrivals in taken:
            self._forget(arrivals)
        return taken

    def remove(self, name: int, distance: int) -> None:
        """Note that a copy of a block is gone that may be waiting."""
        for arrivals in self._by_name.get(name, ()):
            if arrivals.distance == distance:
                for one in arrivals.blocks:
                    if one.name == name and one.held:
                        one.held = False
                        return

    def expire(self, now_s: float) -> int:
        """Drop what waited too long; return how many blocks."""
        if now_s < self._next_s:
            return 0
        before = self._count
        self._next_s = float("inf")
        for parent, waiting in list(self._by_parent.items()):
            kept = [one for one in waiting if one.until_s > now_s]
            for arrivals in waiting:
                if arrivals.until_s <= now_s:
                    self._forget(arrivals)
            if kept:
                self._by_parent[parent] = kept
                self._next_s = min(self._next_s, *(one.until_s for one in kept))
            else:
                del self._by_parent[parent]
        return before - self._count

    def _forget(self, arrivals: Arrivals) -> None:
        self._count -= len(arrivals.blocks)
        for name in sorted(arrivals.names):
            waiting = [one for one in self._by_name[name] if one is not arrivals]
            if waiting:
                self._by_name[name] = waiting
            else:
                del self._by_name[name]
