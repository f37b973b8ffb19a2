"""Deferred assumptions: prompts assumed cached, kept as ids and hashed together at the next lookup.
Pure.

The answer to a short prompt, one without a whole block, may end the first. That is what the next
turn of its conversation begins with, and it is not asked for before that comes: short prompts
themselves never ask. So both are kept as ids, and hashed with their neighbours, at a third of the
cost.
"""

from collections.abc import Iterable
from typing import TypeAlias

from smg_node.core.generation.request import TokenIds
from smg_node.routing.kv_index.block_hash import chain, first_of

Late: TypeAlias = tuple[str, int, TokenIds, TokenIds]
"""A worker, a root, the ids of a prompt that it has, and of its answer."""


def by_worker(late: Iterable[Late], block: int) -> dict[str, list[int]]:
    """Return the hashes that are to be assumed of each worker, in the order in which they were put aside."""
    found: dict[str, list[int]] = {}
    last, hashes, two = "", [], 2 * block
    for worker, root, prompt, answer in late:
        if worker != last:
            last, hashes = worker, found.setdefault(worker, [])
        ids = prompt + answer
        if block <= len(ids) < two:
            hashes.append(first_of(root, ids, block))
        else:
            hashes += chain(root, ids, block)
    return found
