"""Prefix index: the workers that have each block of a prompt cached, as far as this node knows.
Pure.

A wrong answer costs time and never correctness, so the index may know less than is true, whenever
that is cheaper: it forgets what is not asked for (`entries_max`), and sets of holders when there
are too many. It does not know what is not so: what a worker removed, cleared or took along when it
went is void at once.

Sources, from best to worst: what an engine says (confirmed), what another node heard an engine say
(told), and that a prompt was sent there (assumed, for `assumed_s` at most; half as good). Better
news replace worse: an event that confirms or removes a block ends what was assumed and told of it
for that worker.

    hash ─▶ BlockTable ─▶ number of a set ─▶ HolderSets ─▶ mask ─▶ Holders ─▶ workers

Changes go run by run: neighbours in a chain nearly always have the same set (`block_entries`).
Nothing here takes long, but what takes longest goes in slices, by `sweep`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from smg_node.core.generation.request import TokenIds
from smg_node.engines.kv_events import Tier
from smg_node.native.block_table import BlockTable
from smg_node.routing.kv_index.block_entries import Entries
from smg_node.routing.kv_index.block_hash import BLOCK_TOKENS
from smg_node.routing.kv_index.deferred_assumptions import Late, by_worker
from smg_node.routing.kv_index.equal_runs import distinct, run_end
from smg_node.routing.kv_index.holder_bits import SPANS, Holder
from smg_node.routing.kv_index.holder_sets import best_rank, worker_of
from smg_node.routing.kv_index.index_figures import IndexFigures
from smg_node.routing.kv_index.index_observer import Heard, OnCleared
from smg_node.routing.kv_index.rank_match import match_ranks

ENTRIES_MAX: Final = 1_000_000
ASSUMED_S: Final = 180.0
STALE_AFTER_S: Final = 15.0
"""So long a worker's events may be missing until what they said counts half."""
_STALE_WEIGHT: Final = 0.5
_SETS_MAX: Final = 65_536
"""Taking a bit from so many sets takes 4 ms."""
_WORKERS_MAX: Final = 10_000
"""Above, what others tell of further workers is not believed."""
_HIGH_WATER: Final = 15 / 16
"""Above that share of `entries_max`, `sweep` makes room ahead of need."""
_FAR: Final = 2
_FIRST_LOOK: Final = 32
"""Of so many blocks of a prompt at first, then of twice as many: what nobody has is not worth a visit to memory."""
_LATE_MAX: Final = 64
"""So many answers are assumed together, or when somebody looks."""


class PrefixIndex(Entries):
    """The index of one node, for all its models: roots keep them apart. It belongs to one thread."""

    def __init__(
        self,
        *,
        entries_max: int = ENTRIES_MAX,
        block: int = BLOCK_TOKENS,
        assumed_s: float = ASSUMED_S,
        sets_max: int = _SETS_MAX,
        table: BlockTable | None = None,
    ) -> None:
        self.block: Final = block
        super().__init__(entries_max, sets_max, table)
        self._span_s: Final = assumed_s / SPANS
        self._span, self.span_end_s = 0, self._span_s
        """The present span of time, counted from the clock's start; till its end, to assume again changes nothing."""
        self._stale: dict[str, float] = {}
        self._late: list[Late] = []
        """What is to be assumed, all of it in the present span, before anybody looks."""

    # ── What engines say ─────────────────────────────────────────────────────

    def stored(
        self, worker: str, hashes: Sequence[int], tier: Tier, now_s: float, *, rank: int = 0
    ) -> None:
        """Confirm that a rank of `worker` has these blocks in `tier`."""
        self.tick(now_s)
        holder = self._of(worker, rank)
        add = self._holders.confirmed_bit(holder, rank, min(tier, _FAR))
        drop = holder.assumed_at(rank) | holder.told
        self._change(holder, distinct(hashes), add=add, drop=drop)

    def removed(self, worker: str, hashes: Sequence[int], tier: Tier, *, rank: int = 0) -> None:
        """Note that these blocks are gone from `tier`; nothing that is not known changes."""
        holder = self._known(worker)
        if holder is not None:
            bit = holder.ranks[rank][min(tier, _FAR)] if rank in holder.ranks else 0
            drop = bit | holder.assumed_at(rank) | holder.told
            self._change(holder, distinct(hashes), add=0, drop=drop)

    def clear(self, worker: str, *, rank: int | None = None) -> None:
        """Void all that is known of a worker or of one of its ranks: its cache is empty."""
        holder = self._known(worker)
        if holder is not None:
            assumed = holder.assumed if rank is None else holder.assumed_at(rank)
            self._void(holder, rank, also=assumed | holder.told)

    def unlearn(self, worker: str, *, rank: int | None = None) -> None:
        """Void what was confirmed of a worker or of one of its ranks: events were missed."""
        holder = self._known(worker)
        if holder is not None:
            self._void(holder, rank, also=0)

    def doubt(self, worker: str, now_s: float) -> None:
        """Only assume from now on what was confirmed of a worker: this node does not follow it any
        more.
        """
        holder = self._known(worker)
        if holder is not None and holder.confirmed:
            self._assume_instead(holder, holder.confirmed, now_s)
            self._watch.cleared(worker, perhaps=True)

    def set_stale(self, worker: str, since_s: float | None) -> None:
        """Note since when a worker's events are missing; None: they are not."""
        if since_s is None:
            self._stale.pop(worker, None)
        elif self._known(worker) is not None:
            self._stale.setdefault(worker, since_s)

    def forget(self, worker: str) -> None:
        """Forget a worker that is gone."""
        self._stale.pop(worker, None)
        holder = self._known(worker)
        if holder is not None:
            self._void(holder, None, also=holder.assumed | holder.told)
            self._holders.forget(worker)

    # ── What this node and others guess ──────────────────────────────────────

    def assume(
        self, worker: str, hashes: Sequence[int], now_s: float, *, rank: int | None = None
    ) -> None:
        """Assume for a while that `worker` has these blocks: they were sent there, to a `rank` or
        to any.
        """
        if now_s >= self.span_end_s:
            self.tick(now_s)
        self._assume(worker, hashes, rank)

    def _assume(self, worker: str, hashes: Sequence[int], rank: int | None) -> None:
        """Assume it in the present span."""
        holder = self._of(worker, rank) if rank else self._holders.of(worker)
        add = self._holders.assumed_bit(holder, self._span % SPANS, rank)
        if self._begun(holder, hashes := distinct(hashes), add):
            return
        # That others say the worker has it does not say where.
        better = holder.confirmed | holder.told if rank is None else sum(holder.ranks[rank])
        drop = holder.assumed_at(rank) & ~add
        self._change(holder, hashes, add=add, drop=drop, unless=better)

    def assume_late(
        self, worker: str, root: int, prompt: TokenIds, answer: TokenIds, now_s: float
    ) -> None:
        """Assume, at the next lookup, that `worker` has this prompt under that root, with its
        answer, as far as whole blocks go.

        Lookups find what `assume` would have left. The ids must not be changed any more.
        """
        if now_s >= self.span_end_s:
            self.tick(now_s)
        late = self._late
        late.append((worker, root, prompt, answer))
        if len(late) >= _LATE_MAX:
            self._catch_up()

    def _catch_up(self) -> None:
        late, self._late = self._late, []
        for worker, hashes in by_worker(late, self.block).items():
            self._assume(worker, hashes, None)

    def tell(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        """Believe another node that `worker` has these blocks."""
        self.tick(now_s)
        if len(self._holders) >= _WORKERS_MAX and self._holders.known(worker) is None:
            return
        holder = self._of(worker)
        add, drop = self._holders.told_bit(holder), holder.assumed_at(None)
        self._change(holder, distinct(hashes), add=add, drop=drop, unless=holder.confirmed)

    def untell(self, worker: str, hashes: Sequence[int]) -> None:
        """Believe no longer that `worker` has these blocks because another node said so."""
        holder = self._known(worker)
        if holder is not None:
            self._change(holder, distinct(hashes), add=0, drop=holder.told | holder.assumed)

    def untell_all(self, worker: str) -> None:
        """Void all that other nodes said of a worker."""
        holder = self._known(worker)
        if holder is not None:
            self._sets.without(holder.told)

    def doubt_told(self, worker: str, now_s: float) -> None:
        """Only assume from now on what other nodes said of a worker: they are gone, or do not
        follow it any more.
        """
        holder = self._known(worker)
        if holder is not None and holder.told:
            self._assume_instead(holder, holder.told, now_s)

    def _assume_instead(self, holder: Holder, bits: int, now_s: float) -> None:
        self.tick(now_s)
        self._sets.without(bits, self._holders.assumed_bit(holder, self._span % SPANS))

    # ── Lookups ──────────────────────────────────────────────────────────────

    def match(self, hashes: Sequence[int], now_s: float) -> dict[str, float]:
        """Return for each worker that has the first of these blocks how many of them it has, from the first on.

        A block counts for what it saves: one that is far away, assumed or stale for less than 1. What is
        found is kept longer.
        """
        self.tick(now_s)
        table, count = self._table, len(hashes)
        if not count or not table.get(hashes[0]):
            return {}
        scores: dict[str, float] = {}
        alive: Collection[str] | None = None
        values: list[int] = []
        at = 0
        while at < count:
            values += table.look(hashes[at : 2 * at + _FIRST_LOOK])
            known = len(values)
            while at < known:
                start, at = at, run_end(values, at)
                value = values[start]
                view, length = self._sets.view(value >> 1), at - start
                if alive is None:
                    alive = view
                    scores = {key: length * weight for key, weight in view.items()}
                else:
                    alive = [key for key in alive if key in view]
                    for key in alive:
                        scores[key] += length * view[key]
                if not alive:
                    count = at = known
                    break
                if not value & 1:
                    table.put(hashes[start:at], value | 1)
        if self._stale:
            self._weaken(scores, now_s)
        return best_rank(scores) if self._ranked else scores

    def match_ranks(self, worker: str, hashes: Sequence[int], now_s: float) -> dict[int, float]:
        """Return the same for those ranks of one worker of which anything is known.

        What is known of the worker and of no rank is left out: one of them has it, and it is not
        known which.
        """
        self.tick(now_s)
        holder = self._known(worker)
        if holder is None:
            return {}
        scores = match_ranks(holder, self._table, self._sets.masks, hashes)
        if self._is_stale(worker, now_s):
            scores = {rank: score * _STALE_WEIGHT for rank, score in scores.items()}
        return scores

    def knows(self, one: int) -> bool:
        """Whether a block is there at all, whatever its holders; it may be void already."""
        if self._late:
            self._catch_up()
        return self._table.get(one) != 0

    def _weaken(self, scores: dict[str, float], now_s: float) -> None:
        for key in scores:
            if self._is_stale(worker_of(key), now_s):
                scores[key] *= _STALE_WEIGHT

    def _is_stale(self, worker: str, now_s: float) -> bool:
        since_s = self._stale.get(worker)
        return since_s is not None and now_s - since_s >= STALE_AFTER_S

    # ── Observer ─────────────────────────────────────────────────────────────

    def watch(self, on_add: Heard, on_remove: Heard, on_clear: OnCleared) -> None:
        """Report from now on what is confirmed of a worker and what no longer, whatever the rank
        and tier.

        A hash is removed also when it is evicted; `on_clear` comes instead of removing each of them, with
        whether the worker may still have them.
        """
        self._watch.begin(on_add, on_remove, on_clear)

    def held(self, worker: str) -> list[int]:
        """Return what is confirmed of a worker: what `watch` would have added and not removed. Looks at all."""
        holder = self._known(worker)
        return self._with(holder.confirmed, 0) if holder is not None else []

    def blocks(self, worker: str) -> int:
        """Return how many blocks are known of a worker, about: evicted ones still count."""
        holder = self._known(worker)
        return holder.blocks if holder is not None else 0

    def figures(self) -> IndexFigures:
        """Return the counts."""
        if self._late:
            self._catch_up()
        return IndexFigures(len(self._table), len(self._sets), self._evicted, self._narrowed)

    # ── Housekeeping ─────────────────────────────────────────────────────────

    def tick(self, now_s: float) -> None:
        """End assumptions that are too old."""
        if self._late:
            self._catch_up()
        if now_s < self.span_end_s:
            return
        span = max(int(now_s / self._span_s), self._span + 1)
        ended = range(max(self._span + 1, span - SPANS + 1), span + 1)
        self._span, self.span_end_s = span, (span + 1) * self._span_s
        bits = 0
        for holder in self._holders:
            for one in ended:
                bits |= holder.ended(one % SPANS)
        self._sets.without(bits)

    def sweep(self, places: int = 4096) -> None:
        """Look at some entries: drop what is void and, where room is short, what was not asked for.
        Call it often.
        """
        if self._late:
            self._catch_up()
        table, sets = self._table, self._sets
        short = len(table) > self._entries_max * _HIGH_WATER
        # There are many entries, few sets, and those are hardly ever void: so they are looked at first.
        alive = not short and sets.alive(table.ahead(places))
        judge = self._second_chance if short else self._keep
        if table.skip(places) if alive else table.turn(places, judge):
            sets.end_turn()
            # Only here: in the middle of a change there is a bit that no set has yet.
            self._holders.forget_unused(sets.used())

    def resize(self, entries_max: int) -> None:
        """Keep so many blocks at most; what is too much goes with the next changes and sweeps."""
        self._entries_max = entries_max

    def _known(self, worker: str) -> Holder | None:
        """Return the bits of a worker that has any, by all that was said so far."""
        if self._late:
            self._catch_up()
        return self._holders.known(worker)
