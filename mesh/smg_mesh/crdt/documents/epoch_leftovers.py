"""Epoch leftovers: entries of earlier epochs, and which node copies them (rendezvous hashing).

They are in documents of earlier epochs and not in the present one yet.

When an epoch begins, every node writes its own entries again, at once. For the others' entries some
node has to wait: an owner that lives is likely to do it, unless it has begun a new life without
them, and of an owner that is gone one node is enough. So for each owner the living nodes stand in
line (rendezvous hashing, the same line on every node), and write copies after

    union * (3 + place) / 60        3 s, 4 s … of a window of 60 s

Before the union window is over, a node that still misses an entry in the present document has
written it. Two that do so at once have written the same.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from smg_mesh.crdt.documents.document import Document
from smg_mesh.crdt.documents.document_slot import Slot

_WAIT_FIRST: Final = 3
_WAIT_PARTS: Final = 60


class EpochLeftovers:
    """Entries of earlier epochs by root, and the last earlier document while it is still read."""

    def __init__(self, epoch: int, document: Document | None) -> None:
        self.epoch: Final = epoch
        self.document = document
        self.weight = 0
        """What its entries count for, in bytes."""
        self._since_ms: int | None = None
        self._pending: dict[str, dict[Slot, None]] = {}
        self._places: dict[str, int] = {}
        self._living: tuple[str, ...] = ()

    def add(self, slot: Slot) -> None:
        """Take in an entry of an earlier epoch."""
        slot.old = True
        slots = self._pending.setdefault(slot.root, {})
        if slot not in slots:
            slots[slot] = None
            self.weight += slot.weight

    def discard(self, slot: Slot) -> None:
        """Forget an entry: it is written again, or no longer needed."""
        slots = self._pending.get(slot.root, {})
        if slot in slots:
            del slots[slot]
            self.weight -= slot.weight
        if not slots:
            self._pending.pop(slot.root, None)

    def slots(self) -> Sequence[Slot]:
        """Return all of them, by root."""
        return [slot for root in sorted(self._pending) for slot in self._pending[root]]

    def first(self, root: str, count: int) -> Sequence[Slot]:
        """Return the first few of one root."""
        return list(self._pending.get(root, {}))[:count]

    def begin(self, now_ms: int) -> None:
        """Let the window begin, if it has not."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def due_roots(
        self, subject: str, me: str, living: Sequence[str], *, now_ms: int, union_ms: int
    ) -> Sequence[str]:
        """Return whose entries this node writes now, its own first."""
        due = [
            (root != me, root)
            for root in self._pending
            if self._due_ms(root, subject, me, living, union_ms) <= now_ms
        ]
        return [root for _, root in sorted(due)]

    def next_ms(self, subject: str, me: str, living: Sequence[str], union_ms: int) -> int:
        """Return when there is something to do again."""
        assert self._since_ms is not None
        ends = [self._due_ms(root, subject, me, living, union_ms) for root in self._pending]
        return min(ends, default=self._since_ms + union_ms)

    def over(self, now_ms: int, union_ms: int) -> bool:
        """Return whether the window is over and nothing is left."""
        return (
            self._since_ms is not None
            and not self._pending
            and (now_ms >= self._since_ms + union_ms)
        )

    def _due_ms(
        self, root: str, subject: str, me: str, living: Sequence[str], union_ms: int
    ) -> int:
        if self._since_ms is None or root == me:
            return 0
        if tuple(living) != self._living:
            self._living = tuple(living)
            self._places = {}
        place = self._places.get(root)
        if place is None:
            others = [name for name in living if name != root]
            place = self._places[root] = place_of(me, f"{subject}\0{root}", others)
        wait = min(_WAIT_FIRST + place, _WAIT_PARTS)
        return self._since_ms + union_ms * wait // _WAIT_PARTS


def place_of(me: str, subject: str, living: Sequence[str]) -> int:
    """Return how many of the living come before this node in line for a task: at 0 it does it."""
    mine = _score(subject, me)
    return sum(1 for name in living if name != me and _score(subject, name) > mine)


def _score(subject: str, name: str) -> bytes:
    return blake2b(f"{subject}\0{name}".encode(), digest_size=8).digest()
