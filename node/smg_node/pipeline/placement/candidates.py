"""Candidates: eligible workers of one model, computed once for each version of the fleet.

They change when the fleet's version grows, at any change of a worker's state; or when a breaker's
time is over, which is known in advance. Calls that must avoid a worker, or do not fit all of them,
get candidates of their own.
"""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from smg_node.core.journey import DROPPED_MAX
from smg_node.fleet.models.served_model import AnyModel
from smg_node.fleet.workers.worker import Worker
from smg_node.fleet.workers.worker_spec import CHOOSE_LABEL
from smg_node.pipeline.placement.eligibility import EligibleWorkers, Refusing, eligible
from smg_node.routing.hash_ring import Ring
from smg_node.routing.policy import CHOICE
from smg_node.routing.pool import Pool

ZONE_LABEL = "zone"


Dropped: TypeAlias = tuple[tuple[str, str], ...]
"""Workers that cannot be chosen, each with the reason."""


class ChoiceSet(msgspec.Struct, frozen=True):
    """Workers to choose from, in the order of the pool's candidates."""

    workers: Sequence[Worker]
    pool: Pool


class Candidates(msgspec.Struct, frozen=True):
    """One model's workers as of one version of the fleet. `all` is None where none can be chosen."""

    version: int
    model: AnyModel
    serving: Sequence[Worker]
    sieved: EligibleWorkers
    ring: Ring
    known: tuple[tuple[str, float], ...]
    all: ChoiceSet | None
    near: ChoiceSet | None
    """Those of this node's zone, where there are others beside them."""
    dropped: Dropped
    """Who cannot be chosen, and why; not all of very many."""
    choice: str = ""
    """The policy, where the model is a route with a way of its own; else "" for that of the settings."""

    def choosable(self, spill: float) -> ChoiceSet | None:
        """Return the workers to choose from: the own zone's until they have `spill` of their
        concurrency.
        """
        near = self.near
        return self.all if near is None or spilled(near, spill) else near

    def narrowed(self, now_s: float, refusing: Refusing, zone: str) -> "Candidates":
        """Return the candidates of a call that may not go to workers that `refusing` has a reason against."""
        sieved = eligible(self.serving, now_s, refusing)
        return _staged(
            self.version,
            self.model,
            self.serving,
            sieved,
            self.ring,
            self.known,
            zone,
            self.choice,
        )


def candidates_of(
    version: int,
    model: AnyModel,
    serving: Sequence[Worker],
    now_s: float,
    *,
    zone: str,
    before: Candidates | None,
) -> Candidates:
    """Return the candidates for `model`; what did not change is taken over from the ones before."""
    known = tuple((worker.load.worker, worker.load.weight) for worker in serving)
    # A ring is made of all workers, so that it is made anew only when one comes or goes for good.
    if before is not None and before.known == known:
        ring = before.ring
    else:
        ring = Ring(known, before.ring if before is not None else None)
    sieved, choice = eligible(serving, now_s), _choice(serving)
    return _staged(version, model, serving, sieved, ring, known, zone, choice)


def _staged(
    version: int,
    model: AnyModel,
    serving: Sequence[Worker],
    sieved: EligibleWorkers,
    ring: Ring,
    known: tuple[tuple[str, float], ...],
    zone: str,
    choice: str,
) -> Candidates:
    everybody, near = choosables(sieved.candidates, known, ring, zone)
    dropped = sieved.dropped[:DROPPED_MAX]
    return Candidates(
        version, model, serving, sieved, ring, known, everybody, near, dropped, choice
    )


def _choice(serving: Sequence[Worker]) -> str:
    """Return the policy of the route that these are the targets of; "" where they are of none."""
    words = {word for worker in serving if (word := worker.labels.get(CHOOSE_LABEL))}
    return f"{CHOICE}{min(words)}" if words else ""


def choosables(
    workers: Sequence[Worker], known: tuple[tuple[str, float], ...], ring: Ring, zone: str
) -> tuple[ChoiceSet | None, ChoiceSet | None]:
    """Return the choice set, and that of `zone` where other zones have workers too; None for none."""
    near: ChoiceSet | None = None
    if zone:
        own = [worker for worker in workers if worker.labels.get(ZONE_LABEL) == zone]
        if 0 < len(own) < len(workers):
            near = _choosable(own, known, ring)
    return _choosable(workers, known, ring), near


def spilled(near: ChoiceSet, spill: float) -> bool:
    """Whether the workers of a zone have `spill` of their concurrency: other zones are to be used
    as well.
    """
    loads = [worker.load for worker in near.workers]
    limit = spill * sum([load.capacity for load in loads])
    return sum([load.inflight for load in loads]) >= limit


def _choosable(
    workers: Sequence[Worker], known: tuple[tuple[str, float], ...], ring: Ring
) -> ChoiceSet | None:
    if not workers:
        return None
    return ChoiceSet(workers, Pool([worker.load for worker in workers], known, ring))
