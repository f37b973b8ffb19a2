"""Prompt lookup: lookups of prompts in the prefix index, hashed lazily, and what was assumed of
where they went.

A `PromptLookup` stands before the index. It is hashed only when a policy wants to know, and only as
far as some worker may have it: of a long prompt that no worker has, the first few thousand tokens.
All of it is hashed when it was sent to a worker that says nothing of its cache. Long prompts that
come again from the cache of encoded ones, as the same object, are not hashed again.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from smg_node.core.generation.request import TokenIds
from smg_node.routing.kv_index.block_hash import chain, chain_with_media
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.pool import Pool

NEVER: Final = float("-inf")
_FIRST_BLOCKS: Final = 96
"""Hashed at once: 6,144 tokens, in about 10 us."""
_BLOCKS_MAX: Final = 8_192
"""What comes after half a million tokens is not looked at: it costs milliseconds to hash."""
_LATE_IDS_MAX: Final = 1_024
_KEPT_FROM_TOKENS: Final = 2_048
"""Shorter prompts are hashed in a few microseconds."""
_KEPT_TOKENS_MAX: Final = 1 << 20
"""Of all prompts whose hashes are kept: 4 MB of ids and, in blocks of 64, 0.7 of hashes."""

Assumed = Callable[[str, Sequence[int], float], object]
"""Called with a worker, the hashes of a prompt that it began to answer, and when."""


class PromptLookup(msgspec.Struct, eq=False, gc=False):
    """One prompt before the index. `now_s` is when it is asked for: set it anew for a later attempt.

    Of one moment and one pool it is looked up once, because a decision asks for that two or three times. Nothing it
    refers to refers to it.
    """

    _index: PrefixIndex
    root: int
    ids: TokenIds
    now_s: float
    blocks: int
    """How many whole blocks it has, as far as it is looked at."""
    room: int
    """With fewer ids behind it, it has no more whole blocks."""
    media: tuple[tuple[str, int], ...] = ()
    """Identities of its pictures, as engines are sent them, and where in `ids` they begin."""
    _hashes: list[int] | None = None
    _pool: Pool | None = None
    _found: Sequence[float] = ()
    _found_s: float = 0.0
    _assumed_of: str = ""
    _assumed_rank: int | None = None
    _assumed_until_s: float = NEVER
    """Of whom all of it is assumed, on which rank, and until when to assume it again would change nothing."""

    def overlaps(self, pool: Pool) -> Sequence[float]:
        """See `routing.policy.Beginning`."""
        if not self.blocks:
            return pool.nothing
        if pool is self._pool and self.now_s == self._found_s:
            return self._found
        index = self._index
        found = index.match(self._as_far_as_known(), self.now_s)
        overlaps = pool.nothing
        if found:
            block, place, overlaps = index.block, pool.place, [0.0] * len(overlaps)
            for worker, blocks in found.items():
                at = place(worker)
                if at >= 0:
                    overlaps[at] = blocks * block
        self._pool, self._found, self._found_s = pool, overlaps, self.now_s
        return overlaps

    def reaches(self, pool: Pool, token: int) -> bool:
        """See `routing.policy.Beginning`."""
        index = self._index
        before = token // index.block
        if before >= self.blocks:
            return False
        upto = index.match(self.hashes(before)[:before], self.now_s) if before else {}
        block, workers = index.block, pool.workers
        return any(
            overlap > upto.get(worker, 0.0) * block
            for worker, overlap in zip(workers, self.overlaps(pool), strict=True)
        )

    def by_rank(self, worker: str) -> Mapping[int, float]:
        """See `routing.policy.Beginning`."""
        index = self._index
        found = index.match_ranks(worker, self._as_far_as_known(), self.now_s)
        return {rank: blocks * index.block for rank, blocks in found.items()}

    def first(self) -> bytes:
        """See `routing.policy.Beginning`."""
        if not self.blocks:
            return b""
        return self.hashes(1)[0].to_bytes(8, "big")

    def hashes(self, upto: int = _BLOCKS_MAX) -> Sequence[int]:
        """Return the hashes of its whole blocks, of at least the first `upto` that there are."""
        known, blocks = self._hashes, self.blocks
        if known is not None and len(known) == blocks:
            return known
        wanted = upto if upto < blocks else blocks
        if not known:
            if wanted < _FIRST_BLOCKS:
                wanted = _FIRST_BLOCKS
            found = self._chained(self.root, 0, wanted)
            if known is None:
                known = self._hashes = found
            else:
                # Shared with prompts to come that are the same.
                known += found
        elif (had := len(known)) < wanted:
            known += self._chained(known[-1], had, wanted - had)
        return known

    def _chained(self, above: int, had: int, wanted: int) -> list[int]:
        """Return the hashes of the next `wanted` blocks behind the first `had` ones."""
        block = self._index.block
        ids = self.ids[had * block :] if had else self.ids
        if not self.media:
            return chain(above, ids, block, wanted)
        return chain_with_media(above, ids, self._media_from(had), block, wanted)

    def _media_from(self, had: int) -> list[tuple[str, int]]:
        begin = had * self._index.block
        return [(name, offset - begin) for name, offset in self.media if offset >= begin]

    def _as_far_as_known(self) -> Sequence[int]:
        """Return the hashes as far as the index may have some worker for them."""
        index, count = self._index, self.blocks
        if count <= _FIRST_BLOCKS:
            return self.hashes(count)
        upto = _FIRST_BLOCKS
        hashes = self.hashes(upto)
        while upto < count and index.knows(hashes[upto - 1]):
            upto = min(2 * upto, count)
            hashes = self.hashes(upto)
        return hashes

    def hashes_behind(self, ids: TokenIds) -> Sequence[int]:
        """Return the hashes of the whole blocks that it gets with `ids` behind it: whole ones stay what they are."""
        if len(ids) < self.room:
            return ()
        blocks, block = self.blocks, self._index.block
        most = (len(self.ids) + len(ids)) // block
        more = (most if most < _BLOCKS_MAX else _BLOCKS_MAX) - blocks
        last = self.hashes()[-1] if blocks else self.root
        rest = self.ids[blocks * block :] + ids
        if self.media:
            return chain_with_media(last, rest, self._media_from(blocks), block, more)
        return chain(last, rest, block, more)

    def assume(self, worker: str, rank: int | None) -> None:
        """Note that all of it has just been assumed of `worker`."""
        self._assumed_of, self._assumed_rank = worker, rank
        self._assumed_until_s = self._index.span_end_s

    def assumed(self, worker: str, rank: int | None, now_s: float) -> bool:
        """Whether there is nothing of it, or to assume all of it of `worker` now would change nothing."""
        return not self.blocks or (
            now_s < self._assumed_until_s
            and self._assumed_of == worker
            and self._assumed_rank == rank
        )


class _Lately:
    """The hashes of recent long prompts, by the object that their ids are."""

    def __init__(self) -> None:
        # By the address of the ids, which stays theirs as long as they are kept here.
        self._kept: OrderedDict[int, tuple[TokenIds, int, list[int]]] = OrderedDict()
        self._tokens = 0

    def hashes(self, ids: TokenIds, root: int) -> list[int]:
        """Return the list of hashes of these ids, which later hashing extends in place; it may be
        empty.
        """
        kept, name = self._kept, id(ids)
        found = kept.get(name)
        if found is not None:
            if found[1] == root:
                kept.move_to_end(name)
                return found[2]
            self._tokens -= len(kept.pop(name)[0])
        hashes: list[int] = []
        kept[name] = ids, root, hashes
        self._tokens += len(ids)
        while self._tokens > _KEPT_TOKENS_MAX:
            _, (gone, _, _) = kept.popitem(last=False)
            self._tokens -= len(gone)
        return hashes


class PromptLookups:
    """Makes prompts, and remembers where they went. `on_assumed` hears of it too."""

    def __init__(self, index: PrefixIndex, *, on_assumed: Assumed | None = None) -> None:
        self._index = index
        self._block: Final = index.block
        self._on_assumed = on_assumed
        self._late_max: Final = -1 if on_assumed is not None else _LATE_IDS_MAX
        """What longer answers say is not put aside, for the room that their ids take; nor where somebody hears of it."""
        self._lately = _Lately()

    def of(
        self, root: int, ids: TokenIds, now_s: float, media: Sequence[tuple[str, int]] = ()
    ) -> PromptLookup:
        """Return a prompt of these ids under a root: model, adapter and salt.

        `media` are the identities of its pictures and where their ranges begin, as the engines are told of them.
        """
        index, tokens, block = self._index, len(ids), self._block
        blocks, room = tokens // block, block - tokens % block
        if media:
            # Its ids were made for it alone, so that there is nothing to find again by them.
            kept, room = (blocks, room) if blocks < _BLOCKS_MAX else (_BLOCKS_MAX, sys.maxsize)
            return PromptLookup(index, root, ids, now_s, kept, room, tuple(media))
        if tokens < _KEPT_FROM_TOKENS:
            return PromptLookup(index, root, ids, now_s, blocks, room)
        if blocks >= _BLOCKS_MAX:
            return PromptLookup(index, root, ids, now_s, _BLOCKS_MAX, sys.maxsize)
        return PromptLookup(
            index, root, ids, now_s, blocks, room, (), self._lately.hashes(ids, root)
        )

    def answered(
        self,
        prompt: PromptLookup,
        ids: TokenIds,
        worker: str,
        now_s: float,
        *,
        rank: int | None = None,
    ) -> None:
        """Assume for a while that `worker` has it with its answer, which the next turn will begin with.

        What was assumed of the prompt itself a moment ago is not assumed once more.
        """
        short = not prompt.blocks and not prompt.media
        if short and rank is None and prompt.room <= len(ids) <= self._late_max:
            self._index.assume_late(worker, prompt.root, prompt.ids, ids, now_s)
            return
        hashes = prompt.hashes_behind(ids)
        if not prompt.assumed(worker, rank, now_s):
            hashes = [*prompt.hashes(), *hashes]
        if hashes:
            self._assume(hashes, worker, now_s, rank)

    def dispatched(
        self, prompt: PromptLookup, worker: str, now_s: float, *, rank: int | None = None
    ) -> None:
        """Assume for a while that `worker` has all of it, on the rank it was for: its first token came."""
        hashes = prompt.hashes()
        if hashes:
            self._assume(hashes, worker, now_s, rank)
            prompt.assume(worker, rank)

    def _assume(self, hashes: Sequence[int], worker: str, now_s: float, rank: int | None) -> None:
        self._index.assume(worker, hashes, now_s, rank=rank)
        if self._on_assumed is not None:
            self._on_assumed(worker, hashes, now_s)
