"""Which worker has which blocks cached, as far as this node knows.

A wrong answer costs time and never correctness, so the index may know less than is true, whenever that is cheaper:
it forgets what nobody asks for (`entries_max`), and sets of holders when there are too many. It does not know what
is not so: what a worker removed, cleared or took along when it went is void at once.

Sources, from best to worst: what an engine says (confirmed), what another node heard an engine say (told), and
that a prompt was sent there (assumed, for `assumed_s` at most; half as good). Better news replace worse: whoever
confirms or removes a block ends what was assumed and told of it for that worker.

    hash ─▶ BlockTable ─▶ number of a set ─▶ HolderSets ─▶ mask ─▶ Holders ─▶ workers

Changes go run by run: neighbours in a chain nearly always have the same set. Nothing here takes long, but what
takes longest goes in slices, by `sweep`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from smg_node.engines.kv import Tier
from smg_node.packing.block_table import BlockTable
from smg_node.routing.kv.by_rank import match_ranks
from smg_node.routing.kv.chain import BLOCK_TOKENS
from smg_node.routing.kv.figures import IndexFigures
from smg_node.routing.kv.holders import SPANS, Holder, Holders
from smg_node.routing.kv.runs import distinct, run_end
from smg_node.routing.kv.sets import NOBODY, NONE_KNOWN, HolderSets, best_rank, worker_of
from smg_node.routing.kv.watch import Heard, HeardAll, Watch

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
_PATIENCE: Final = 8
"""So many places the hand passes for each one it must free, until it frees what it finds."""


class PrefixIndex:
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
        self._entries_max = entries_max
        self._span_s: Final = assumed_s / SPANS
        self._table = table if table is not None else BlockTable()
        self._holders = Holders()
        self._sets = HolderSets(self._holders, sets_max)
        self._span, self.span_end_s = 0, self._span_s
        """The present span of time, counted from the clock's start; till its end, to assume again changes nothing."""
        self._stale: dict[str, float] = {}
        self._ranked = False
        """Whether any worker ever had more than one rank."""
        self._watch = Watch(self._holders)
        self._evicted = self._narrowed = 0

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
        holder = self._holders.known(worker)
        if holder is not None:
            bit = holder.ranks[rank][min(tier, _FAR)] if rank in holder.ranks else 0
            drop = bit | holder.assumed_at(rank) | holder.told
            self._change(holder, distinct(hashes), add=0, drop=drop)

    def clear(self, worker: str, *, rank: int | None = None) -> None:
        """Void all that is known of a worker or of one of its ranks: its cache is empty."""
        holder = self._holders.known(worker)
        if holder is not None:
            assumed = holder.assumed if rank is None else holder.assumed_at(rank)
            self._void(holder, rank, also=assumed | holder.told)

    def unlearn(self, worker: str, *, rank: int | None = None) -> None:
        """Void what was confirmed of a worker or of one of its ranks: events were missed."""
        holder = self._holders.known(worker)
        if holder is not None:
            self._void(holder, rank, also=0)

    def doubt(self, worker: str, now_s: float) -> None:
        """Only assume from now on what was confirmed of a worker: nobody hears it here any more."""
        holder = self._holders.known(worker)
        if holder is not None and holder.confirmed:
            self._assume_instead(holder, holder.confirmed, now_s)
            self._watch.cleared(worker, perhaps=True)

    def set_stale(self, worker: str, since_s: float | None) -> None:
        """Note since when a worker's events are missing; None: they are not."""
        if since_s is None:
            self._stale.pop(worker, None)
        elif self._holders.known(worker) is not None:
            self._stale.setdefault(worker, since_s)

    def forget(self, worker: str) -> None:
        """Forget a worker that is gone."""
        self._stale.pop(worker, None)
        holder = self._holders.known(worker)
        if holder is not None:
            self._void(holder, None, also=holder.assumed | holder.told)
            self._holders.forget(worker)

    # ── What this node and others guess ──────────────────────────────────────

    def assume(
        self, worker: str, hashes: Sequence[int], now_s: float, *, rank: int | None = None
    ) -> None:
        """Assume for a while that `worker` has these blocks: somebody sent them there, to a `rank` or to any."""
        if now_s >= self.span_end_s:
            self.tick(now_s)
        holder = self._of(worker, rank) if rank else self._holders.of(worker)
        add = self._holders.assumed_bit(holder, self._span % SPANS, rank)
        if self._begun(holder, hashes := distinct(hashes), add):
            return
        # That others say the worker has it does not say where.
        better = holder.confirmed | holder.told if rank is None else sum(holder.ranks[rank])
        drop = holder.assumed_at(rank) & ~add
        self._change(holder, hashes, add=add, drop=drop, unless=better)

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
        holder = self._holders.known(worker)
        if holder is not None:
            self._change(holder, distinct(hashes), add=0, drop=holder.told | holder.assumed)

    def untell_all(self, worker: str) -> None:
        """Void all that other nodes said of a worker."""
        holder = self._holders.known(worker)
        if holder is not None:
            self._sets.without(holder.told)

    def doubt_told(self, worker: str, now_s: float) -> None:
        """Only assume from now on what other nodes said of a worker: who said it is gone, or hears it no more."""
        holder = self._holders.known(worker)
        if holder is not None and holder.told:
            self._assume_instead(holder, holder.told, now_s)

    def _assume_instead(self, holder: Holder, bits: int, now_s: float) -> None:
        self.tick(now_s)
        self._sets.without(bits, self._holders.assumed_bit(holder, self._span % SPANS))

    # ── Who has a beginning ──────────────────────────────────────────────────

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

        What is known of the worker and of no rank is left out: one of them has it, and nobody knows which.
        """
        self.tick(now_s)
        holder = self._holders.known(worker)
        if holder is None:
            return {}
        scores = match_ranks(holder, self._table, self._sets.masks, hashes)
        if self._is_stale(worker, now_s):
            scores = {rank: score * _STALE_WEIGHT for rank, score in scores.items()}
        return scores

    def knows(self, one: int) -> bool:
        """Whether a block is there at all, whoever has it; it may be void already."""
        return self._table.get(one) != 0

    def _weaken(self, scores: dict[str, float], now_s: float) -> None:
        for key in scores:
            if self._is_stale(worker_of(key), now_s):
                scores[key] *= _STALE_WEIGHT

    def _is_stale(self, worker: str, now_s: float) -> bool:
        since_s = self._stale.get(worker)
        return since_s is not None and now_s - since_s >= STALE_AFTER_S

    # ── Who listens ──────────────────────────────────────────────────────────

    def watch(self, on_add: Heard, on_remove: Heard, on_clear: HeardAll) -> None:
        """Tell from now on what is confirmed of a worker and what no longer, whatever the rank and tier.

        A hash is removed also when it is evicted; `on_clear` comes instead of removing each of them, with
        whether the worker may still have them.
        """
        self._watch.begin(on_add, on_remove, on_clear)

    def held(self, worker: str) -> list[int]:
        """Return what is confirmed of a worker: what `watch` would have added and not removed. Looks at all."""
        holder = self._holders.known(worker)
        return self._with(holder.confirmed, 0) if holder is not None else []

    def blocks(self, worker: str) -> int:
        """Return how many blocks are known of a worker, about: evicted ones still count."""
        holder = self._holders.known(worker)
        return holder.blocks if holder is not None else 0

    def figures(self) -> IndexFigures:
        """Return the counts."""
        return IndexFigures(len(self._table), len(self._sets), self._evicted, self._narrowed)

    # ── Housekeeping ─────────────────────────────────────────────────────────

    def tick(self, now_s: float) -> None:
        """End assumptions that are too old."""
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
        """Look at some entries: drop what is void and, where room is short, what nobody asked for. Call it often."""
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

    def _make_room(self, count: int) -> None:
        table, goal, patience = self._table, self._entries_max - count, _PATIENCE * count + 64
        while len(table) > goal and patience > 0:
            patience -= 16
            if table.turn(16, self._second_chance):
                self._sets.end_turn()
        while len(table) > goal:
            if table.turn(16, self._drop):
                self._sets.end_turn()

    def _keep(self, one: int, value: int) -> int:
        """Return the value of an entry as it is, 0 if it is void."""
        return value if self._sets.see(value >> 1) else 0

    def _second_chance(self, one: int, value: int) -> int:
        """Return the value of an entry that was looked for since the last time, else 0."""
        if value & 1 and self._sets.see(value >> 1):
            return value ^ 1
        return self._drop(one, value)

    def _drop(self, one: int, value: int) -> int:
        mask = self._sets.masks[value >> 1]
        if mask:
            self._evicted += 1
            if self._watch.on:
                self._watch.changed((one,), mask, 0)
        return 0

    # ── Changing ─────────────────────────────────────────────────────────────

    def _of(self, worker: str, rank: int = 0) -> Holder:
        holder = self._holders.of(worker)
        if rank not in holder.ranks:
            holder.ranks[rank] = [0, 0, 0]
            self._ranked = True
            # Every rank may have what is assumed of its worker.
            self._sets.forget_views()
        return holder

    def _change(
        self, holder: Holder, hashes: Sequence[int], *, add: int, drop: int, unless: int = 0
    ) -> None:
        """Give each of these blocks, named once, the bits of `add` for those of `drop`, unless it has one of those."""
        if add and len(self._table) + len(hashes) > self._entries_max:
            hashes = hashes[: self._entries_max]
            self._make_room(len(hashes))
        values = self._table.look(hashes)
        at, count = 0, len(values)
        while at < count:
            start, at = at, run_end(values, at)
            value = values[start]
            before = self._sets.masks[value >> 1]
            after = (before & ~drop) | add
            if after != before and not before & unless:
                run = hashes if at - start == count else hashes[start:at]
                self._change_run(holder, run, value, after)

    def _begun(self, holder: Holder, hashes: Sequence[int], add: int) -> bool:
        """Give blocks that nobody has what is assumed; return False, with nothing done, where there is more to it."""
        table = self._table
        more = len(table) + len(hashes) > self._entries_max or any(table.look(hashes))
        number = NONE_KNOWN if more else self._sets.number(add)
        if number == NONE_KNOWN:
            return False
        table.add(hashes, number << 1)
        holder.blocks += len(hashes)
        return True

    def _change_run(self, holder: Holder, run: Sequence[int], value: int, after: int) -> None:
        """Give blocks that have the same set another one; knows less where there is no room for it."""
        before, number = self._sets.masks[value >> 1], self._sets.number(after, value >> 1, holder)
        if number <= NOBODY:
            if number == NONE_KNOWN:
                self._narrowed += len(run)
                after &= holder.every
                number = self._sets.number(after, narrow=True) or NOBODY
            after = after if number > NOBODY else 0
        if value:
            self._table.put(run, number << 1 | (value & 1))
        elif after:
            self._table.add(run, number << 1)
        had, has = before & holder.every, after & holder.every
        if not had or not has:
            holder.blocks += len(run) * (bool(has) - bool(had))
        if self._watch.on:
            self._watch.changed(run, before, after)

    def _void(self, holder: Holder, rank: int | None, *, also: int) -> None:
        """Take what is confirmed, of a rank or of all, and `also` these bits, from all blocks."""
        bits = holder.confirmed if rank is None else sum(holder.ranks.get(rank, ()))
        rest = holder.confirmed & ~bits
        gone = self._with(bits, rest) if self._watch.on and rest else ()
        self._sets.without(bits | also)
        if not rest:
            holder.blocks = 0
            if bits:
                self._watch.cleared(holder.worker)
        self._watch.removed(holder.worker, gone)

    def _with(self, any_of: int, none_of: int) -> list[int]:
        """Return the blocks whose set has one of these bits and none of those."""
        wanted = self._sets.values_with(any_of, none_of)
        return self._table.having(wanted) if wanted else []
