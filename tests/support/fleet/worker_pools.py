"""Pools of made-up workers, for tests of policies; and placers that each see the fleet a little differently."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from smg_node.core.ports import Rng
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.hash_ring import Ring
from smg_node.routing.policy import Asked, Bindings, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool


def load(worker: str, inflight: int = 0, *, weight: float = 1.0) -> WorkerLoad:
    made = WorkerLoad(worker, weight=weight)
    made.hear(inflight, 100 * inflight)
    return made


@dataclass
class FakeBeginning:
    """A prompt before an index that knows what it is told: tokens by worker."""

    known: Mapping[str, float] = field(default_factory=dict)
    block: bytes = b"01234567"
    blocks: int = 1
    ranks: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def overlaps(self, pool: Pool) -> list[float]:
        return [self.known.get(one.worker, 0.0) for one in pool.candidates]

    def reaches(self, pool: Pool, token: int) -> bool:
        return any(known > token for known in self.overlaps(pool))

    def first(self) -> bytes:
        return self.block

    def by_rank(self, worker: str) -> Mapping[int, float]:
        return self.ranks.get(worker, {})


def press(one: WorkerLoad, pressure_s: float) -> None:
    """Let memory and slots of a worker cost so much until something else happens to it."""
    one._kv_s += pressure_s - one.pressure_s
    one.base_s = one.wait_s + one.pressure_s


def slow_down(one: WorkerLoad, prefill_rate: float) -> None:
    """Let a worker take so many prompt tokens a second."""
    one.prefill_rate = prefill_rate
    one.prefill_s = 1 / prefill_rate


def pool_of(loads: Sequence[int]) -> Pool:
    """Return a pool of workers w00, w01, … with so many open calls."""
    return Pool([load(f"w{at:02}", inflight) for at, inflight in enumerate(loads)])


@dataclass
class View:
    """One node's placer, pure: its own loads, its own idea of who is ready, and a table that all may share."""

    name: str
    workers: Sequence[str]
    bindings: Bindings = field(default_factory=OwnBindings)
    away: Iterable[str] = ()
    loads: Mapping[str, int] = field(default_factory=dict)
    options: PolicyOptions = field(default_factory=PolicyOptions)
    sticky: bool = False

    def __post_init__(self) -> None:
        self.policies = Policies(self.bindings, self.options, sticky=self.sticky)
        self.rng: Rng = random.Random(self.name)
        self._rings: dict[tuple[tuple[str, float], ...], Ring] = {}

    def pool(self) -> Pool:
        known = tuple((worker, 1.0) for worker in sorted(self.workers))
        ring = self._rings.setdefault(known, Ring(known))
        away = set(self.away)
        ready = [
            load(worker, self.loads.get(worker, 0))
            for worker in sorted(self.workers)
            if worker not in away
        ]
        return Pool(ready, known, ring)

    def place(self, policy: str, asked: Asked) -> str:
        pool = self.pool()
        return pool.candidates[self.policies.named(policy).choose(asked, pool, self.rng)].worker
