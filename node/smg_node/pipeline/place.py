"""From a model name to a worker that holds one of our calls.

The decision is one synchronous step: look at all candidates, choose, count the call in. Only waiting
for a worker to appear is asynchronous. What a decision stands on (who may be chosen, who else serves the
model, the ring of all of them) is worked out once and kept until some worker's state changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.engines.engine import Engine, ModelCard
from smg_node.engines.status import UNREACHABLE_CODE
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.model import ServedModel
from smg_node.fleet.worker import Worker
from smg_node.routing.known import Policies
from smg_node.routing.policy import Asked
from smg_node.routing.pool import Pool
from smg_node.routing.ring import Ring

RETRY_AFTER_S: Final = 2.0
"""What a client is told while no worker can be had: a probe interval at most, engines come back in seconds."""


@dataclass(slots=True)
class Hold:
    """One of our calls on a worker. `release` once, whatever happened."""

    worker: Worker
    engine: Engine
    card: ModelCard
    tokens: int = 0
    _held: bool = True

    def note(self, error: SmgError) -> None:
        """Tell the fleet what became of the call: nobody at the other end means to look at once."""
        if error.code == UNREACHABLE_CODE:
            self.worker.suspect()

    def release(self) -> None:
        """Count the call out; harmless the second time."""
        if self._held:
            self._held = False
            self.worker.release(self.tokens)


@dataclass(frozen=True, slots=True)
class PlacerOptions:
    """Which policy chooses, for all models and for some, and how long a request waits for a worker."""

    policy: str
    policies: Mapping[str, str] = field(default_factory=dict)
    wait_for_worker_s: float = 2.0


@dataclass(slots=True)
class _Stage:
    """What decisions about one model stand on, for one version of the fleet. No pool: nobody can be chosen."""

    version: int
    model: ServedModel
    ready: Sequence[Worker]
    pool: Pool | None
    ring: Ring
    known: tuple[tuple[str, float], ...]


class Placer:
    """Chooses workers for this node's calls."""

    def __init__(
        self, fleet: Fleet, policies: Policies, options: PlacerOptions, *, clock: Clock, rng: Rng
    ) -> None:
        self._fleet = fleet
        self._policies = policies
        self._options = options
        self._clock = clock
        self._rng = rng
        self._stages: dict[str, _Stage] = {}

    def retune(self, *, policy: str, policies: Mapping[str, str], wait_for_worker_s: float) -> None:
        """Choose by other policies from the next request on; policies whose name stays keep their state."""
        self._options = PlacerOptions(policy, dict(policies), wait_for_worker_s)

    async def model(self, name: str, *, deadline_s: float) -> ServedModel:
        """Return the model of that name or alias.

        NOT_FOUND `model_not_found` if no worker serves it; OVERLOADED `no_worker_available` while a
        worker that might serve it has not said so yet.
        """
        until_s = self._wait_until(deadline_s)
        while True:
            found = self._fleet.served(name)
            if found is not None:
                return found
            if not self._fleet.unknown_yet():
                raise SmgError(
                    ErrorKind.NOT_FOUND,
                    f"the model {name!r} does not exist here",
                    where="model",
                    code="model_not_found",
                )
            self._fleet.doubt_unknown()
            if not await self._wait(until_s):
                raise _no_worker(f"no worker serves {name!r} yet, but some are still starting")

    async def hold(
        self,
        model: ServedModel,
        asked: Asked,
        *,
        deadline_s: float,
        target: str | None = None,
        like: Hold | None = None,
        tokens: int = 0,
    ) -> Hold:
        """Choose a worker of `model` and count a call of `tokens` prompt tokens in.

        With `like`, only workers that a call checked against that one cannot harm.

        Waits a little for one to come back, then OVERLOADED `no_worker_available`. With `target` it is
        that worker or an error: NOT_FOUND `worker_not_found`, OVERLOADED `worker_unavailable`.
        """
        if target is not None:
            return self._hold_target(model, target, tokens)
        until_s = self._wait_until(deadline_s)
        while True:
            worker = self._choose(model, asked, like)
            if worker is not None:
                return _take(worker, tokens)
            self._fleet.doubt(model)
            if not await self._wait(until_s):
                raise _no_worker(f"no worker of {model.name!r} is ready")

    def _choose(self, model: ServedModel, asked: Asked, like: Hold | None) -> Worker | None:
        stage = self._stage(model)
        ready, pool = stage.ready, stage.pool
        if pool is None:
            return None
        if like is not None:
            places = [at for at, worker in enumerate(ready) if _takes_the_same(worker, like)]
            if not places:
                return None
            if len(places) < len(ready):
                ready, pool = [ready[at] for at in places], pool.only(places)
        options = self._options
        policy = self._policies.named(options.policies.get(model.name, options.policy))
        return ready[policy.choose(asked, pool, self._rng)]

    def _stage(self, model: ServedModel) -> _Stage:
        found, version = self._stages.get(model.name), self._fleet.version
        if found is not None and found.version == version and found.model is model:
            return found
        serving = self._fleet.serving(model)
        known = tuple((worker.load.worker, worker.load.weight) for worker in serving)
        ready = [worker for worker in serving if worker.routable]
        # A ring is made of all workers, so that it is made anew only when one comes or goes for good.
        if found is not None and found.known == known:
            ring = found.ring
        else:
            ring = Ring(known, found.ring if found is not None else None)
        pool = Pool([worker.load for worker in ready], known, ring) if ready else None
        stage = _Stage(version, model, ready, pool, ring, known)
        self._stages[model.name] = stage
        return stage

    def _hold_target(self, model: ServedModel, target: str, tokens: int) -> Hold:
        worker = self._fleet.get(target)
        if worker.model is not model or not worker.routable:
            raise SmgError(
                ErrorKind.OVERLOADED,
                f"worker {target!r} cannot take requests for {model.name!r} now",
                code="worker_unavailable",
                retry_after_s=RETRY_AFTER_S,
            )
        return _take(worker, tokens)

    def _wait_until(self, deadline_s: float) -> float:
        return min(self._clock.monotonic_s() + self._options.wait_for_worker_s, deadline_s)

    async def _wait(self, until_s: float) -> bool:
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0:
            return False
        await self._fleet.wait_changed(left_s)
        return True


def _take(worker: Worker, tokens: int) -> Hold:
    assert worker.engine is not None
    assert worker.card is not None
    worker.hold(tokens)
    return Hold(worker, worker.engine, worker.card, tokens)


def _takes_the_same(worker: Worker, like: Hold) -> bool:
    """Whether `worker` has the bounds and abilities of `like`'s: what is right for one is for both."""
    if worker.card is None or worker.engine is None:
        return False
    return worker.engine.abilities == like.engine.abilities and _bounds(worker.card) == _bounds(
        like.card
    )


def _bounds(card: ModelCard) -> tuple[object, ...]:
    return card.vocabulary, card.context, card.prompt_max, card.eos_ids, card.sampling_defaults


def _no_worker(message: str) -> SmgError:
    return SmgError(
        ErrorKind.OVERLOADED, message, code="no_worker_available", retry_after_s=RETRY_AFTER_S
    )
