"""Pool: candidates of one routing decision, with their load figures, and all workers of the model
on the ring.
"""

from collections.abc import Sequence
from typing import Protocol

from smg_node.fleet.load.target_figures import TargetFigures
from smg_node.routing.hash_ring import Ring


class Candidate(Protocol):
    """One worker as policies see it; read again for every decision, because its numbers move.

    `inflight` and `tokens` are the open calls of all nodes and what they still have to compute, as far as
    this node knows. `weight` is its share of the keys, beside the others'.
    """

    @property
    def worker(self) -> str:
        """Its id."""
        ...

    @property
    def inflight(self) -> int:
        """Open calls of all nodes."""
        ...

    @property
    def own_inflight(self) -> int:
        """Those of them that are this node's."""
        ...

    @property
    def tokens(self) -> int:
        """Prompt tokens of the open calls of all nodes that are not worked off yet."""
        ...

    @property
    def weight(self) -> float:
        """Its capacity relative to others; above 0, 1 is usual."""
        ...

    @property
    def wait_s(self) -> float:
        """Seconds until a request that is placed now would begin to be worked on, as far as this node knows."""
        ...

    @property
    def pressure_s(self) -> float:
        """Seconds that its full memory and its busy slots are expected to cost a request; 0 when it is idle."""
        ...

    @property
    def base_s(self) -> float:
        """Sum of the wait and the pressure: its cost for any request, whatever has to be
        computed.
        """
        ...

    @property
    def prefill_s(self) -> float:
        """Seconds a prompt token takes that is not cached; above 0."""
        ...

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens it works off a second when they are not cached: one by `prefill_s`."""
        ...

    @property
    def figures(self) -> TargetFigures | None:
        """What was measured at a model of a vendor; None for engines, and where nothing was yet."""
        ...

    @property
    def capacity(self) -> int:
        """Number of requests it runs at once; at least 1."""
        ...

    @property
    def sampled_s(self) -> float:
        """Time of its engine's last load report, monotonic seconds; minus infinity without one."""
        ...

    @property
    def fresh_until_s(self) -> float:
        """Until when it is filling a cache that began empty, monotonic seconds; minus infinity if it is not."""
        ...


class Pool:
    """The candidates of a decision. `candidates` is sorted by id and not empty.

    `known` is every worker of the model with its weight, sorted, whether it can be chosen now or
    not: where a key belongs does not change because a worker is away for a moment. `workers` are
    the ids of the candidates, `places` their numbers. After `fresh_until_s` none of them fills a
    cache that began empty. `nothing` is how much they have cached of a prompt that none of them
    has: the same object each time, so that it is known at a glance.
    """

    __slots__ = (
        "_places",
        "candidates",
        "fresh_until_s",
        "known",
        "nothing",
        "places",
        "ring",
        "weight",
        "workers",
    )

    def __init__(
        self,
        candidates: Sequence[Candidate],
        known: Sequence[tuple[str, float]] | None = None,
        ring: Ring | None = None,
    ) -> None:
        assert candidates
        self.candidates = tuple(candidates)
        own = tuple((one.worker, one.weight) for one in self.candidates)
        self.known: tuple[tuple[str, float], ...] = own if known is None else tuple(known)
        self.weight = sum(weight for _, weight in own)
        self.fresh_until_s = max(one.fresh_until_s for one in self.candidates)
        self.ring = ring if ring is not None else Ring(self.known)
        self.workers = tuple(worker for worker, _ in own)
        self.places = range(len(own))
        self.nothing: Sequence[float] = [0.0] * len(own)
        self._places = dict(zip(self.workers, self.places, strict=True))

    def place(self, worker: str) -> int:
        """Return where `worker` stands among the candidates; -1 if it does not."""
        return self._places.get(worker, -1)

    def only(self, places: Sequence[int]) -> "Pool":
        """Return the same pool with fewer candidates: those at `places`."""
        return Pool([self.candidates[at] for at in places], self.known, self.ring)

    def nearest(self, digest: bytes) -> int:
        """Return the first candidate on the ring from `digest` on."""
        places = self._places
        for worker in self.ring.walk(digest):
            at = places.get(worker, -1)
            if at >= 0:
                return at
        raise AssertionError("a pool has a candidate, and the ring knows it")

    def nearest_free(self, digest: bytes, *, load_factor: float, floor: int) -> int:
        """Return the first candidate on the ring that is not full.

        Full is `floor` open calls, or the worker's share of all open calls times `load_factor`, whichever
        is more. From Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads" (2017).
        """
        candidates, places = self.candidates, self._places
        share = -1.0
        for worker in self.ring.walk(digest):
            at = places.get(worker, -1)
            if at < 0:
                continue
            one = candidates[at]
            inflight = one.inflight
            if inflight < floor:
                return at
            if share < 0:
                total = sum([each.inflight for each in candidates])
                share = load_factor * (total + 1) / self.weight
            if inflight < int(share * one.weight):
                return at
        # Shares are rounded down, so with very unequal weights all may be full by a hair.
        return min(range(len(candidates)), key=lambda at: candidates[at].inflight)
