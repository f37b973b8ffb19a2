"""Rank match: the prefix of a prompt that each rank of one chosen worker has cached. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from smg_node.native.block_table import BlockTable
from smg_node.routing.kv_index.equal_runs import run_end
from smg_node.routing.kv_index.holder_bits import Holder
from smg_node.routing.kv_index.holder_sets import rank_weight

_FIRST_LOOK: Final = 32
"""Of so many blocks at first, then of twice as many: beyond what somebody has there is nothing to see."""


def match_ranks(
    holder: Holder, table: BlockTable, masks: Sequence[int], hashes: Sequence[int]
) -> dict[int, float]:
    """Return for each rank that has the first of these blocks how many of them it has, from the first on.

    A block counts for what it saves. `masks` are those of the sets that `table` has the numbers of.
    """
    scores: dict[int, float] = {}
    alive = list(holder.ranks)
    for number, length in _runs(table, hashes):
        own = masks[number] & holder.every
        weights = {rank: rank_weight(holder, rank, own) for rank in alive}
        alive = [rank for rank in alive if weights[rank]]
        if not alive:
            break
        for rank in alive:
            scores[rank] = scores.get(rank, 0.0) + length * weights[rank]
    return scores


def _runs(table: BlockTable, hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the sets of these blocks, and how many neighbours have the same one."""
    at = 0
    while at < len(hashes):
        values = table.look(hashes[at : 2 * at + _FIRST_LOOK])
        done = 0
        while done < len(values):
            end = run_end(values, done)
            yield values[done] >> 1, end - done
            done = end
        at += len(values)
