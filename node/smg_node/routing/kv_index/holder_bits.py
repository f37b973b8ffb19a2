"""Holder bits: a bit mask position for each way in which a worker may hold blocks. Pure.

A worker may hold a block in several ways, and each way is one bit: confirmed by its engine, on a rank and at a
distance; assumed, because a prompt was sent there, to a rank or to any, in one of a few spans of time; told by
another node.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

SPANS: Final = 4
"""Assumptions live in that many spans of time; when a new one begins, the oldest ends."""
DISTANCES: Final = 3
"""On the device, in the host's memory, further away."""


@dataclass(slots=True)
class Holder:
    """The bits of one worker. `ranks` has, for each rank that ever spoke, its three distances."""

    worker: str
    ranks: dict[int, list[int]] = field(default_factory=lambda: {0: [0, 0, 0]})
    spans: list[int] = field(default_factory=lambda: [0] * SPANS)
    """What is assumed of the worker, whatever the rank."""
    rank_spans: dict[int, list[int]] = field(default_factory=dict)
    """What is assumed of a rank."""
    told: int = 0
    confirmed: int = 0
    """All bits of `ranks`."""
    every: int = 0
    """All bits."""
    blocks: int = 0
    """How many blocks are known of it, about."""

    @property
    def assumed(self) -> int:
        """All bits of `spans` and of `rank_spans`."""
        return self.assumed_at(None) | self.assumed_of_ranks

    @property
    def assumed_of_ranks(self) -> int:
        """All bits of `rank_spans`."""
        bits = 0
        for spans in self.rank_spans.values():
            bits |= spans[0] | spans[1] | spans[2] | spans[3]
        return bits

    def assumed_at(self, rank: int | None) -> int:
        """Return the bits of what is assumed of the worker, and of this rank of it."""
        spans = self.spans
        bits = spans[0] | spans[1] | spans[2] | spans[3]
        if rank is not None and rank in self.rank_spans:
            spans = self.rank_spans[rank]
            bits |= spans[0] | spans[1] | spans[2] | spans[3]
        return bits

    def ended(self, span: int) -> int:
        """Return the bits of what was assumed in one span of time."""
        bits = self.spans[span]
        for spans in self.rank_spans.values():
            bits |= spans[span]
        return bits


class Holders:
    """Workers and their bits. A bit that is given back is given out again."""

    def __init__(self) -> None:
        self._by_worker: dict[str, Holder] = {}
        self._by_bit: list[Holder | None] = []
        self._free: list[int] = []
        self.confirmed = 0
        """The bits of all workers that are confirmed."""

    def __iter__(self) -> Iterator[Holder]:
        return iter(self._by_worker.values())

    def __len__(self) -> int:
        return len(self._by_worker)

    def known(self, worker: str) -> Holder | None:
        """Return the bits of a worker that has any."""
        return self._by_worker.get(worker)

    def of(self, worker: str) -> Holder:
        """Return the bits of a worker, which may be new."""
        found = self._by_worker.get(worker)
        if found is None:
            found = self._by_worker[worker] = Holder(worker)
        return found

    def at(self, bit: int) -> Holder:
        """Return the worker of a bit."""
        found = self._by_bit[bit]
        assert found is not None, "a bit in a mask is somebody's"
        return found

    def confirmed_bit(self, holder: Holder, rank: int, distance: int) -> int:
        """Return the mask of one rank at one distance."""
        bits = holder.ranks[rank]
        if not bits[distance]:
            bits[distance] = self._take(holder)
            holder.confirmed |= bits[distance]
            self.confirmed |= bits[distance]
        return bits[distance]

    def assumed_bit(self, holder: Holder, span: int, rank: int | None = None) -> int:
        """Return the mask of a span of time, of the worker or of one of its ranks."""
        spans = holder.spans
        if rank is not None:
            spans = holder.rank_spans.setdefault(rank, [0] * SPANS)
        if not spans[span]:
            spans[span] = self._take(holder)
        return spans[span]

    def told_bit(self, holder: Holder) -> int:
        """Return the mask of what other nodes told."""
        if not holder.told:
            holder.told = self._take(holder)
        return holder.told

    def forget_unused(self, used: int) -> Sequence[str]:
        """Forget all workers that have none of the `used` bits, and return them; they come again if need be."""
        idle = [worker for worker, holder in self._by_worker.items() if not holder.every & used]
        for worker in idle:
            self.forget(worker)
        return idle

    def forget(self, worker: str) -> None:
        """Give a worker's bits back; no mask may have them any more."""
        gone = self._by_worker.pop(worker)
        self.confirmed &= ~gone.confirmed
        for bit in bits_of(gone.every):
            self._by_bit[bit] = None
            self._free.append(bit)

    def _take(self, holder: Holder) -> int:
        if self._free:
            bit = self._free.pop()
            self._by_bit[bit] = holder
        else:
            bit = len(self._by_bit)
            self._by_bit.append(holder)
        holder.every |= 1 << bit
        return 1 << bit


def bits_of(mask: int) -> Iterator[int]:
    """Yield the places of the bits of a mask, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
