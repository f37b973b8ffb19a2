"""Block entries: bounded table of block hashes, each with its set of holders: changes and eviction.
Pure.

Changes go run by run: neighbours in a chain nearly always have the same set. What is void, or is not looked for where
room is short, is dropped as the hand of the table comes by.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.native.block_table import BlockTable
from smg_node.routing.kv_index.equal_runs import run_end
from smg_node.routing.kv_index.holder_bits import Holder, Holders
from smg_node.routing.kv_index.holder_sets import NOBODY, NONE_KNOWN, HolderSets
from smg_node.routing.kv_index.index_observer import Watch

_PATIENCE: Final = 8
"""So many places the hand passes for each one it must free, until it frees what it finds."""


class Entries:
    """At most `entries_max` blocks, and `sets_max` sets of holders."""

    def __init__(self, entries_max: int, sets_max: int, table: BlockTable | None) -> None:
        self._entries_max = entries_max
        self._table = table if table is not None else BlockTable()
        self._holders = Holders()
        self._sets = HolderSets(self._holders, sets_max)
        self._ranked = False
        """Whether any worker ever had more than one rank."""
        self._watch = Watch(self._holders)
        self._evicted = self._narrowed = 0

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
        """Give blocks without holders what is assumed; return False, with nothing done, where there
        is more to it.
        """
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

    # ── Making room ──────────────────────────────────────────────────────────

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
