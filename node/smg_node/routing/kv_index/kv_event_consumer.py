"""KV event consumer: applies one engine's KV events, batch by batch, to the prefix index; detects
gaps. Pure.

Every rank of a worker numbers its batches by itself, one by one. While the numbers are without a hole, the view is
exact but for what was before it began. After a hole it is worth nothing: it is given up, and the subscription begins
anew. A stream that breaks and goes on where it was (`start`) loses nothing; until it does, what is known counts for
less and less, because removals are not told (`PrefixIndex.set_stale`).

    first ──▶ following ──▶ (closed: stale) ──▶ following, from the cursor
                 │ hole, history lost, cursor refused, several ranks after a break
                 ▼
               anew: from 0, nothing confirmed

A snapshot begins a rank anew by itself; its chunks come in order, and a batch between them is a hole.
Batches that only carry load neither move the cursor nor end anything.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from smg_node.engines.kv_events import (
    CURSOR_CODE,
    LOST_CODE,
    KvBatch,
    KvCleared,
    KvEvent,
    KvRemoved,
    KvStored,
    Tier,
)
from smg_node.routing.kv_index.block_hash import MASK, Root
from smg_node.routing.kv_index.engine_block_tree import (
    GONE,
    NODES_MAX,
    ROOT,
    TOKENS_MAX,
    BlockTree,
    Change,
)
from smg_node.routing.kv_index.orphan_blocks import Arrival, Arrivals, Parked
from smg_node.routing.kv_index.prefix_index import PrefixIndex

RANKS_MAX: Final = 256
"""Of one worker; batches of more are refused."""
_TIERS: Final = (Tier.DEVICE, Tier.HOST, Tier.DISK)
_FAR: Final = 2


class Verdict(Enum):
    """Whether the subscription goes on or begins anew."""

    GO_ON = auto()
    RESYNC = auto()
    """Subscribe anew, from `KvFollower.start`."""


class _Rank:
    """The view of one rank."""

    __slots__ = ("chunk", "cursor", "number", "parked", "tree")

    def __init__(self, number: int, block: int) -> None:
        self.number = number
        self.cursor: int | None = None
        """The last sequence that was taken in."""
        self.chunk = 0
        """Which chunk of a snapshot comes next; 0 outside of one."""
        self.tree = BlockTree(block)
        self.parked = Parked()


class KvFollower:
    """Follows one worker. `root` names the beginning of its model's prompts, by adapter and salt.

    It keeps at most `blocks_max` engine blocks; an engine that seems to have more has them unknown to us.
    """

    def __init__(
        self, worker: str, index: PrefixIndex, *, root: Root, blocks_max: int = NODES_MAX
    ) -> None:
        self._worker = worker
        self._index = index
        self._root = root
        self._blocks_max = min(blocks_max, NODES_MAX)
        self._ranks: dict[int, _Rank] = {}
        self._anew = False
        """Whether what is known ends with the first batch that comes."""
        self._is_stale = False
        self.batches = 0
        self.gaps = 0
        """Holes in the numbers."""
        self.resyncs = 0
        """How often the view was given up."""
        self.orphans = 0
        """Engine blocks whose parent never came."""
        self.refused = 0
        """Engine blocks beyond a bound."""
        self.confused = 0
        """Engine blocks whose name stood for another one."""
        self.unknown_before = 0
        """Batches that the last snapshot knew nothing of."""

    @property
    def start(self) -> int:
        """The sequence to subscribe from; 0 is the beginning."""
        if self._anew or len(self._ranks) != 1:
            return 0
        rank = next(iter(self._ranks.values()))
        return 0 if rank.cursor is None or rank.chunk else rank.cursor + 1

    @property
    def blocks(self) -> int:
        """Number of engine blocks known."""
        return sum(len(rank.tree) for rank in self._ranks.values())

    # ── What happens to the stream ───────────────────────────────────────────

    def feed(self, batch: KvBatch, now_s: float) -> Verdict:
        """Take a batch in. After RESYNC nothing is confirmed any more."""
        self.batches += 1
        if self._is_stale and not self._anew:
            self._is_stale = False
            self._index.set_stale(self._worker, None)
        if batch.load_only:
            return Verdict.GO_ON
        if self._anew:
            self._begin_anew()
        rank = self._rank(batch.rank)
        if rank is None:
            self.refused += 1
            return Verdict.GO_ON
        if not self._in_order(rank, batch):
            self.gaps += 1
            self._begin_anew()
            return Verdict.RESYNC
        for event in batch.events:
            self._take_in(rank, event, now_s, snapshot=batch.snapshot is not None)
        self.orphans += rank.parked.expire(now_s)
        return Verdict.GO_ON

    def lost(self, code: str) -> None:
        """Note that the stream ended with an error: its history is lost, or the cursor not served."""
        if code in (CURSOR_CODE, LOST_CODE):
            self._begin_anew()

    def closed(self, now_s: float) -> None:
        """Note that the stream broke: the worker goes on, and what it does is unknown."""
        if self.start == 0 and self._ranks:
            self._anew = True
        self._is_stale = True
        self._index.set_stale(self._worker, now_s)

    def _begin_anew(self) -> None:
        self.resyncs += 1
        self._ranks.clear()
        self._anew = self._is_stale = False
        self._index.unlearn(self._worker)
        self._index.set_stale(self._worker, None)

    def _rank(self, number: int) -> _Rank | None:
        found = self._ranks.get(number)
        if found is None and len(self._ranks) < RANKS_MAX:
            found = self._ranks[number] = _Rank(number, self._index.block)
        return found

    def _in_order(self, rank: _Rank, batch: KvBatch) -> bool:
        """Whether a batch is the next one; if so, the cursor stands on it."""
        snapshot, expected = batch.snapshot, None if rank.cursor is None else rank.cursor + 1
        if snapshot is None:
            in_order = rank.chunk == 0 and expected in (None, batch.sequence)
        elif snapshot.index == 0:
            in_order = True
            self.unknown_before = snapshot.unknown_before
            self._empty(rank, flushed=False)
        else:
            in_order = snapshot.index == rank.chunk and expected == batch.sequence
        if in_order:
            rank.cursor = batch.sequence
            last = snapshot is None or snapshot.index + 1 >= snapshot.count
            rank.chunk = 0 if last or snapshot is None else snapshot.index + 1
        return in_order

    # ── What happened to the cache ───────────────────────────────────────────

    def _take_in(self, rank: _Rank, event: KvEvent, now_s: float, *, snapshot: bool) -> None:
        if isinstance(event, KvStored):
            self._tell(rank, self._store(rank, event, now_s), now_s)
        elif isinstance(event, KvRemoved):
            self._tell(rank, self._remove(rank, event), now_s)
        else:
            assert isinstance(event, KvCleared)
            # A snapshot begins with it only to say that it is one.
            self._empty(rank, flushed=not snapshot)

    def _empty(self, rank: _Rank, *, flushed: bool) -> None:
        rank.tree = BlockTree(self._index.block)
        rank.parked = Parked()
        if flushed:
            self._index.clear(self._worker, rank=rank.number)
        else:
            self._index.unlearn(self._worker, rank=rank.number)

    def _store(self, rank: _Rank, event: KvStored, now_s: float) -> list[Change]:
        arrivals = Arrivals(
            [Arrival(one.hash & MASK, one.ids, one.plain, one.media) for one in event.blocks],
            min(event.tier, _FAR),
        )
        parent, root = ROOT, 0
        if event.parent is None:
            root = self._root(event.adapter, event.salt)
        else:
            name = event.parent & MASK
            parent = rank.tree.row(name)
            if parent == ROOT:
                if not rank.parked.park(name, arrivals, now_s):
                    self.orphans += len(arrivals.blocks)
                return []
        return self._grow(rank, parent, root, arrivals)

    def _grow(self, rank: _Rank, parent: int, root: int, arrivals: Arrivals) -> list[Change]:
        """Put blocks behind a parent, and then those that waited for one of them."""
        tree, parked = rank.tree, rank.parked
        room = self._blocks_max - self.blocks
        ghosts: list[int] = []
        changes: list[Change] = []
        todo = [(parent, root, arrivals)]
        while todo:
            parent, root, arrivals = todo.pop()
            for one in arrivals.blocks:
                row = tree.row(one.name)
                if row == ROOT:
                    if not 0 < len(one.ids) <= TOKENS_MAX or room <= 0:
                        self.refused += 1
                        break
                    room -= 1
                    row = tree.add(
                        one.name, parent, root, one.ids, plain=one.plain, media=one.media
                    )
                elif tree.parent(row) != parent:
                    self.confused += 1
                    break
                if one.held:
                    tree.hold(row, arrivals.distance, changes)
                else:
                    ghosts.append(one.name)
                parent = row
                if parked:
                    todo.extend((row, 0, waited) for waited in reversed(parked.take(one.name)))
        # What was removed while it waited is needed only if something follows it.
        for name in ghosts:
            tree.prune(tree.row(name))
        return changes

    def _remove(self, rank: _Rank, event: KvRemoved) -> list[Change]:
        tree, distance = rank.tree, min(event.tier, _FAR)
        changes: list[Change] = []
        for one in event.hashes:
            name = one & MASK
            row = tree.row(name)
            if row != ROOT:
                tree.release(row, distance, changes)
                tree.prune(row)
            elif rank.parked:
                rank.parked.remove(name, distance)
        return changes

    def _tell(self, rank: _Rank, changes: Iterable[Change], now_s: float) -> None:
        """Tell the index what has changed of our blocks."""
        by_kind: dict[tuple[int, int], list[int]] = {}
        for one, before, after in changes:
            by_kind.setdefault((before, after), []).append(one)
        index, worker = self._index, self._worker
        # What is held elsewhere now is told first: it was never gone.
        for (_, after), hashes in by_kind.items():
            if after != GONE:
                index.stored(worker, hashes, _TIERS[after], now_s, rank=rank.number)
        for (before, _), hashes in by_kind.items():
            if before != GONE:
                index.removed(worker, hashes, _TIERS[before], rank=rank.number)
