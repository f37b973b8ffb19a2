"""From a model name to a worker that holds one of our calls.

The decision is one synchronous step: look at all candidates, choose, count the call in. Only waiting
for a worker to appear is asynchronous.
"""

from dataclasses import dataclass
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.engines.engine import Engine, ModelCard
from smg_node.engines.status import UNREACHABLE_CODE
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.model import ServedModel
from smg_node.fleet.worker import Worker
from smg_node.routing.policy import Candidate, Policy

RETRY_AFTER_S: Final = 2.0
"""What a client is told while no worker can be had: a probe interval at most, engines come back in seconds."""


@dataclass(slots=True)
class Hold:
    """One of our calls on a worker. `release` once, whatever happened."""

    worker: Worker
    engine: Engine
    card: ModelCard
    _held: bool = True

    def note(self, error: SmgError) -> None:
        """Tell the fleet what became of the call: nobody at the other end means to look at once."""
        if error.code == UNREACHABLE_CODE:
            self.worker.suspected.set()

    def release(self) -> None:
        """Count the call out; harmless the second time."""
        if self._held:
            self._held = False
            self.worker.release()


class Placer:
    """Chooses workers for this node's calls."""

    def __init__(
        self, fleet: Fleet, policy: Policy, *, clock: Clock, rng: Rng, wait_for_worker_s: float
    ) -> None:
        self._fleet = fleet
        self._policy = policy
        self._clock = clock
        self._rng = rng
        self._wait_for_worker_s = wait_for_worker_s

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
            if not await self._wait(until_s):
                raise _no_worker(f"no worker serves {name!r} yet, but some are still starting")

    async def hold(
        self,
        model: ServedModel,
        *,
        deadline_s: float,
        target: str | None = None,
        like: Hold | None = None,
    ) -> Hold:
        """Choose a worker of `model` and count a call in.

        With `like`, only workers that a call checked against that one cannot harm.

        Waits a little for one to come back, then OVERLOADED `no_worker_available`. With `target` it is
        that worker or an error: NOT_FOUND `worker_not_found`, OVERLOADED `worker_unavailable`.
        """
        if target is not None:
            return self._hold_target(model, target)
        until_s = self._wait_until(deadline_s)
        while True:
            workers = self._fleet.candidates(model)
            if like is not None:
                workers = [worker for worker in workers if _takes_the_same(worker, like)]
            if workers:
                return self._take(self._choose(model, workers))
            if not await self._wait(until_s):
                raise _no_worker(f"no worker of {model.name!r} is ready")

    def _choose(self, model: ServedModel, workers: list[Worker]) -> Worker:
        candidates = [
            Candidate(worker.id, worker.inflight, worker.card.running_max if worker.card else None)
            for worker in workers
        ]
        return workers[self._policy.choose(model.name, candidates, self._rng)]

    def _hold_target(self, model: ServedModel, target: str) -> Hold:
        worker = self._fleet.get(target)
        if worker.model is not model or not worker.routable:
            raise SmgError(
                ErrorKind.OVERLOADED,
                f"worker {target!r} cannot take requests for {model.name!r} now",
                code="worker_unavailable",
                retry_after_s=RETRY_AFTER_S,
            )
        return self._take(worker)

    def _take(self, worker: Worker) -> Hold:
        assert worker.engine is not None
        assert worker.card is not None
        worker.hold()
        return Hold(worker, worker.engine, worker.card)

    def _wait_until(self, deadline_s: float) -> float:
        return min(self._clock.monotonic_s() + self._wait_for_worker_s, deadline_s)

    async def _wait(self, until_s: float) -> bool:
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0:
            return False
        await self._fleet.wait_changed(left_s)
        return True


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
