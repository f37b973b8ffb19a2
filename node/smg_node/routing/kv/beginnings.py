"""The beginnings of prompts, as placement asks for them.

A `Prompt` stands before the index. It is hashed only when a policy wants to know, and only as far as some worker may
have it: of a long prompt that nobody knows the first few thousand tokens. All of it is hashed when it was sent to
a worker that says nothing of its cache.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from smg_node.core.request import TokenIds
from smg_node.routing.kv.chain import chain
from smg_node.routing.kv.index import PrefixIndex
from smg_node.routing.pool import Pool

_FIRST_BLOCKS: Final = 96
"""Hashed at once: 6,144 tokens, in about 10 us."""
_BLOCKS_MAX: Final = 8_192
"""What comes after half a million tokens is not looked at: it costs milliseconds to hash."""

Assumed = Callable[[str, Sequence[int], float], object]
"""Called with a worker, the hashes of a prompt that it began to answer, and when."""


class Prompt:
    """One prompt before the index. `now_s` is when it is asked for: set it anew for a later attempt.

    Of one moment and one pool it is looked up once, because a decision asks for that two or three times.
    """

    __slots__ = ("_found", "_found_s", "_hashes", "_ids", "_index", "_pool", "_root", "now_s")

    def __init__(self, index: PrefixIndex, root: int, ids: TokenIds, now_s: float) -> None:
        self._index = index
        self._root = root
        self._ids = ids
        self._hashes: list[int] | None = None
        self._pool: Pool | None = None
        self._found: Sequence[float] = ()
        self._found_s = now_s
        self.now_s = now_s

    def overlaps(self, pool: Pool) -> Sequence[float]:
        """See `routing.policy.Beginning`."""
        if pool is self._pool and self.now_s == self._found_s:
            return self._found
        index = self._index
        block = index.block
        if len(self._ids) < block:
            return pool.nothing
        found = index.match(self._as_far_as_known(), self.now_s)
        overlaps = pool.nothing
        if found:
            place, overlaps = pool.place, [0.0] * len(overlaps)
            for worker, blocks in found.items():
                at = place(worker)
                if at >= 0:
                    overlaps[at] = blocks * block
        self._pool, self._found, self._found_s = pool, overlaps, self.now_s
        return overlaps

    def by_rank(self, worker: str) -> Mapping[int, float]:
        """See `routing.policy.Beginning`."""
        index = self._index
        found = index.match_ranks(worker, self._as_far_as_known(), self.now_s)
        return {rank: blocks * index.block for rank, blocks in found.items()}

    def first(self) -> bytes:
        """See `routing.policy.Beginning`."""
        if len(self._ids) < self._index.block:
            return b""
        return self.hashes(1)[0].to_bytes(8, "big")

    def hashes(self, upto: int = _BLOCKS_MAX) -> Sequence[int]:
        """Return the hashes of its whole blocks, of at least the first `upto` that there are."""
        known = self._hashes
        block = self._index.block
        wanted = min(upto, len(self._ids) // block, _BLOCKS_MAX)
        if known is None:
            wanted = max(wanted, min(_FIRST_BLOCKS, len(self._ids) // block))
            known = self._hashes = chain(self._root, self._ids, block, wanted)
        elif len(known) < wanted:
            had = len(known)
            last = known[-1] if known else self._root
            known += chain(last, self._ids[had * block :], block, wanted - had)
        return known

    def _as_far_as_known(self) -> Sequence[int]:
        """Return the hashes as far as the index may have some worker for them."""
        index = self._index
        count = min(len(self._ids) // index.block, _BLOCKS_MAX)
        upto = min(_FIRST_BLOCKS, count)
        hashes = self.hashes(upto)
        while upto < count and index.knows(hashes[upto - 1]):
            upto = min(2 * upto, count)
            hashes = self.hashes(upto)
        return hashes

    def continued(self, ids: TokenIds) -> "Prompt":
        """Return this prompt with what was answered to it."""
        longer = Prompt(self._index, self._root, self._ids + ids, self.now_s)
        # Whole blocks stay what they are.
        longer._hashes = None if self._hashes is None else self._hashes[:]
        return longer


class Beginnings:
    """Makes prompts, and remembers where they went. `on_assumed` hears of it too."""

    def __init__(self, index: PrefixIndex, *, on_assumed: Assumed | None = None) -> None:
        self._index = index
        self._on_assumed = on_assumed

    def of(self, root: int, ids: TokenIds, now_s: float) -> Prompt:
        """Return a prompt of these ids under a root: model, adapter and salt."""
        return Prompt(self._index, root, ids, now_s)

    def answered(
        self, prompt: Prompt, ids: TokenIds, worker: str, now_s: float, *, rank: int | None = None
    ) -> None:
        """Assume for a while that `worker` has it with its answer, which the next turn will begin with."""
        self.dispatched(prompt.continued(ids), worker, now_s, rank=rank)

    def dispatched(
        self, prompt: Prompt, worker: str, now_s: float, *, rank: int | None = None
    ) -> None:
        """Assume for a while that `worker` has all of it, on the rank it was for: its first token came."""
        hashes = prompt.hashes()
        if hashes:
            self._index.assume(worker, hashes, now_s, rank=rank)
            if self._on_assumed is not None:
                self._on_assumed(worker, hashes, now_s)
