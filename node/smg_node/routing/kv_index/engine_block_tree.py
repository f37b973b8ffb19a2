"""Engine block tree: the blocks that one rank's engine holds, mapped to index blocks of another
size. Pure.

Engine blocks have names of the engine's own and any size; ours have 64 tokens and names that follow from the ids.
A *node* is one engine block, known by its name, its parent and where it begins. One of our blocks counts as held
when every engine block that it lies in is held, at the distance of the furthest of them:

    engine blocks of 16   | a | b | c | d | e |          of 48   |    a    |    b    |    c    |
    ours                  |       0       |  1 …                 |      0      |      1      |  2 …

so a removal of `c` here takes 0 away, and there 1 and 2. No engine block size is special. A node that is gone stays as a
*ghost* while others descend from it, because they follow from its ids.

Nodes are rows of flat arrays, not objects: a worker may have 60,000 of them, and millions of objects would cost
the collector of cyclic garbage seconds. A row is about 50 bytes, beside 100 for its name and 100 for those ids that
our next block still needs.
"""

from array import array
from collections.abc import Sequence
from typing import Final

from smg_node.core.generation.request import TokenIds
from smg_node.routing.kv_index.block_hash import link, media_seed, raw_ids

ROOT: Final = 0
"""The row that stands for no node."""
GONE: Final = 3
"""The distance of what is not held; 0, 1 and 2 are held, the further the larger."""
_DISTANCES: Final = 3
_COPIES_MAX: Final = 1 << 16
TOKENS_MAX: Final = 1 << 13
"""Of one engine block; engines use a few hundred at most."""
NODES_MAX: Final = 1 << 18
"""Of one tree: where a node ends then fits into 32 bits."""
_UNSAID: Final = GONE | GONE << 2

Change = tuple[int, int, int]
"""One of our blocks, the distance at which it was held, and the one at which it is."""


class BlockTree:
    """The engine blocks of one rank. `block` is the size of ours, in tokens."""

    def __init__(self, block: int) -> None:
        self._block: Final = block
        self._rows: dict[int, int] = {}
        self._names = array("Q", (0,))
        self._parents = array("I", (ROOT,))
        self._starts = array("I", (0,))
        self._ends = array("I", (0,))
        self._above = array("Q", (0,))
        """The hash of our last block that ends at or before the node's end; the root's if none does."""
        self._held = array("B", (GONE,))
        """The nearest distance at which a node is held."""
        self._said = array("B", (_UNSAID,))
        """The distances of our blocks that end in it: two bits of the first, two of all others."""
        self._children = array("I", (ROOT,))
        self._next = array("I", (ROOT,))
        self._before = array("I", (ROOT,))
        self._tails: list[bytes | None] = [None]
        """Those ids of a node that our next block needs."""
        self._more: dict[int, tuple[int, ...]] = {}
        """The hashes of our blocks that end in a node, without the last, where there are several."""
        self._copies: dict[tuple[int, int], int] = {}
        """How many copies there are by (row, distance), where there is any but one at one distance."""
        self._shared: dict[int, list[int]] = {}
        """Of each of our blocks that ends amidst engine blocks: how many of these hold it at which distance."""
        self._opaque: set[int] = set()
        """Rows that more than ids and pictures went into, and all that descend from them."""
        self._pictures: dict[int, list[tuple[str, int]]] = {}
        """Of rows in which pictures begin: their identities and places, from the beginning of the prompt."""
        self._free: list[int] = []
        self._tip_row, self._tip = ROOT, b""
        """The last plain node that came, and what `_pending` would say of it: the next one mostly follows it."""

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, name: int) -> int:
        """Return the row of an engine's name; `ROOT` if it is not known."""
        return self._rows.get(name, ROOT)

    def holds(self, row: int) -> bool:
        """Whether a node is held, and no ghost."""
        return self._held[row] != GONE

    def parent(self, row: int) -> int:
        """Return the row of the parent."""
        return self._parents[row]

    # ── Nodes that come ──────────────────────────────────────────────────────

    def add(
        self,
        name: int,
        parent: int,
        root: int,
        ids: TokenIds,
        *,
        plain: bool,
        media: Sequence[tuple[str, int]] = (),
    ) -> int:
        """Make a node that is not held yet, and return its row.

        It stands behind `parent`, or at the beginning of a prompt with the hash `root`. `media` are the pictures that
        begin in it, with their places in it.
        """
        assert name not in self._rows
        assert 0 < len(ids) <= TOKENS_MAX
        assert len(self._rows) < NODES_MAX
        start = self._ends[parent]
        end = start + len(ids)
        row = self._place(name, parent, start, end)
        if not plain or parent in self._opaque:
            self._opaque.add(row)
        else:
            if media:
                self._pictures[row] = [(one, start + offset) for one, offset in media]
            self._name_ours(row, parent, self._above[parent] if parent else root, ids)
        first = self._children[parent]
        if parent:
            self._next[row] = first
            self._before[first] = row
            self._children[parent] = row
        return row

    def _place(self, name: int, parent: int, start: int, end: int) -> int:
        if self._free:
            row = self._free.pop()
            self._names[row], self._parents[row] = name, parent
            self._starts[row], self._ends[row] = start, end
        else:
            row = len(self._names)
            self._names.append(name)
            self._parents.append(parent)
            self._starts.append(start)
            self._ends.append(end)
            self._above.append(0)
            self._held.append(GONE)
            self._said.append(_UNSAID)
            self._children.append(ROOT)
            self._next.append(ROOT)
            self._before.append(ROOT)
            self._tails.append(None)
        self._rows[name] = row
        return row

    def _name_ours(self, row: int, parent: int, above: int, ids: TokenIds) -> None:
        """Work out our blocks that end in a node, and keep the ids that the next one needs."""
        width = 4 * self._block
        pending = self._tip if parent == self._tip_row else self._pending(parent)
        raw = pending + raw_ids(ids)
        ours: list[int] = []
        at = 0
        pictures = self._pictures_of(row) if self._pictures else ()
        while at + width <= len(raw):
            if pictures:
                above = self._seeded(above, pictures, row, len(ours))
            above = link(above, raw[at : at + width])
            ours.append(above)
            at += width
        self._above[row] = above
        if len(ours) > 1:
            self._more[row] = tuple(ours[:-1])
        self._tip_row, self._tip = row, raw[at:]
        # Of what is left over, only the node's own part is kept here; the rest stands with its ancestors.
        own = min(len(raw) - at, 4 * len(ids))
        self._tails[row] = raw[len(raw) - own :] if own else None

    def _pictures_of(self, row: int) -> list[tuple[str, int]]:
        """Return the pictures that begin in a node, or before it in the block of ours that it begins in."""
        begin = self._starts[row] // self._block * self._block
        found: list[tuple[str, int]] = []
        while row and self._ends[row] > begin:
            found += self._pictures.get(row, ())
            row = self._parents[row]
        return found

    def _seeded(
        self, above: int, pictures: Sequence[tuple[str, int]], row: int, number: int
    ) -> int:
        """Return what the block of ours is hashed with that is the `number`-th to end in a node."""
        begin = (self._starts[row] // self._block + number) * self._block
        inside = [
            (one, place - begin) for one, place in pictures if begin <= place < begin + self._block
        ]
        return media_seed(above, inside) if inside else above

    def _pending(self, row: int) -> bytes:
        """Return the ids between the end of our last block and the end of a node."""
        missing = 4 * (self._ends[row] % self._block)
        parts: list[bytes] = []
        while missing > 0:
            tail = self._tails[row]
            assert tail is not None
            parts.append(tail[-missing:])
            missing -= len(parts[-1])
            row = self._parents[row]
        return b"".join(reversed(parts))

    # ── Copies that come and go ──────────────────────────────────────────────

    def hold(self, row: int, distance: int, changes: list[Change]) -> None:
        """Count a copy in; add to `changes` which of our blocks are held now, or nearer than before."""
        key = row, distance
        known = self._copies.get(key)
        if known is not None:
            self._copies[key] = min(known + 1, _COPIES_MAX)
            return
        held = self._held[row]
        if held == distance:
            self._copies[key] = 2
            return
        if held == GONE:
            self._held[row] = distance
        else:
            # A second distance: both are counted from now on.
            self._copies.setdefault((row, held), 1)
            self._copies[key] = 1
            self._held[row] = min(held, distance)
        if self._held[row] != held:
            self._follow(row, changes)

    def release(self, row: int, distance: int, changes: list[Change]) -> None:
        """Count a copy out; add to `changes` which of our blocks are held no longer, or further away."""
        held, key = self._held[row], (row, distance)
        known = self._copies.get(key)
        if known is None:
            if held != distance:
                return
            self._held[row] = GONE
        elif known > 1:
            self._copies[key] = known - 1
            return
        else:
            del self._copies[key]
            left = [one for one in range(_DISTANCES) if (row, one) in self._copies]
            self._held[row] = left[0] if left else GONE
        if self._held[row] != held:
            self._follow(row, changes)

    def prune(self, row: int) -> None:
        """Forget a node that is not held and has no descendants, and ancestors that were kept for its sake."""
        while row and self._held[row] == GONE and not self._children[row]:
            parent = self._parents[row]
            self._unlink(row, parent)
            del self._rows[self._names[row]]
            self._tails[row] = None
            self._more.pop(row, None)
            self._pictures.pop(row, None)
            self._opaque.discard(row)
            self._said[row] = _UNSAID
            self._free.append(row)
            row = parent

    def _unlink(self, row: int, parent: int) -> None:
        before, after = self._before[row], self._next[row]
        if before:
            self._next[before] = after
        elif parent:
            self._children[parent] = after
        if after:
            self._before[after] = before
        self._next[row] = self._before[row] = ROOT

    # ── Ours that follow ─────────────────────────────────────────────────────

    def _follow(self, row: int, changes: list[Change]) -> None:
        """Add what changed of our blocks that lie in a node: those ending in it and in its next descendants."""
        if row in self._opaque:
            return
        self._end_in(row, changes)
        # A descendant matters while it begins before the end of the block that the node ends in.
        limit = -(-self._ends[row] // self._block) * self._block
        todo = [row]
        while todo:
            one = todo.pop()
            child = self._children[one] if self._ends[one] < limit else ROOT
            while child:
                if child not in self._opaque:
                    self._end_in(child, changes)
                    todo.append(child)
                child = self._next[child]

    def _end_in(self, row: int, changes: list[Change]) -> None:
        """Add what changed of our blocks that end in a node."""
        block, starts = self._block, self._starts
        whole = self._ends[row] // block
        count = whole - starts[row] // block
        if not count:
            return
        # The first of them may begin in ancestors; what comes after it lies in this node alone.
        nearest = self._held[row]
        first_start = (whole - count) * block
        furthest, up = nearest, row
        while starts[up] > first_start:
            up = self._parents[up]
            if self._held[up] > furthest:
                furthest = self._held[up]
        said = self._said[row]
        now = furthest | (nearest if count > 1 else GONE) << 2
        if now == said:
            return
        self._said[row] = now
        if count == 1 and self._ends[row] % block == 0:
            changes.append((self._above[row], said & 3, furthest))
        else:
            self._end_many(row, said, now, changes)

    def _end_many(self, row: int, said: int, now: int, changes: list[Change]) -> None:
        """Add what changed where several of our blocks end in a node, or one in its midst."""
        ours = [*self._more.get(row, ()), self._above[row]]
        rest = len(ours) - 1
        before, after = [said & 3, *[said >> 2] * rest], [now & 3, *[now >> 2] * rest]
        for at, (one, was, will) in enumerate(zip(ours, before, after, strict=True)):
            if at < rest or self._ends[row] % self._block:
                was, will = self._share(one, was, will)
            # One that ends where the node does is no other node's.
            if was != will:
                changes.append((one, was, will))

    def _share(self, one: int, before: int, after: int) -> tuple[int, int]:
        """Count a node among those that have an end of our blocks in their midst; return the
        nearest before and after.
        """
        counts = self._shared.setdefault(one, [0] * _DISTANCES)
        was = _nearest(counts)
        if before != GONE:
            counts[before] -= 1
        if after != GONE:
            counts[after] += 1
        will = _nearest(counts)
        if will == GONE:
            del self._shared[one]
        return was, will


def _nearest(counts: Sequence[int]) -> int:
    return next((distance for distance, count in enumerate(counts) if count), GONE)
