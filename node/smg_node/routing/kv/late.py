"""What is to be assumed of workers, put aside until somebody looks: together it costs a third.

An answer that ends a block says what the next turn of its conversation begins with, and nobody asks for that before the
next turn comes. It is kept as ids, and hashed with its neighbours.
"""

from collections.abc import Iterable
from typing import TypeAlias

from smg_node.core.request import TokenIds
from smg_node.routing.kv.chain import chain, first_of

Late: TypeAlias = tuple[str, int, TokenIds, int]
"""A worker, the hash of a block or a root, the ids behind it, and how many whole blocks of them are meant."""


def by_worker(late: Iterable[Late], block: int) -> dict[str, list[int]]:
    """Return the hashes that are to be assumed of each worker, in the order in which they were put aside."""
    found: dict[str, list[int]] = {}
    last, hashes = "", []
    for worker, above, ids, blocks in late:
        if worker != last:
            last, hashes = worker, found.setdefault(worker, [])
        if blocks == 1:
            hashes.append(first_of(above, ids, block))
        else:
            hashes += chain(above, ids, block, blocks)
    return found
