"""Decider: the synchronous half of placement: chooses and reserves a worker, if there is one.

Reading all candidates, choosing, counting the call in and logging it in its journey is one step:
nothing can change in between.
"""

from typing import TYPE_CHECKING, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import TokenIds
from smg_node.core.ports import Clock, Rng
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.served_model import AnyModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.eligibility import Refusing, probe_of
from smg_node.pipeline.placement.pair_selection import PairSelector
from smg_node.pipeline.placement.picker import Picker
from smg_node.pipeline.placement.placement_request import (
    PROBE,
    TARGET,
    Beginnings,
    CachedPlacement,
    ObserveEncode,
    Part,
    PlacementAttempt,
    PlacementRequest,
    Rule,
    unobserved,
)
from smg_node.pipeline.placement.role_candidates import RoleCandidates, role_candidates_of
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import NOBODY, Avoid
from smg_node.routing.policy_registry import Policies

if TYPE_CHECKING:
    # Loaded with the first picture where somebody encodes.
    from smg_node.pipeline.placement.encoder_selection import EncoderSelector

__all__ = [
    "RETRY_AFTER_S",
    "Beginnings",
    "CachedPlacement",
    "Decider",
    "PlacementAttempt",
    "PlacementRequest",
    "Rule",
]

EXCLUDED: Final = "excluded"
RETRY_AFTER_S: Final = 2.0
"""What a client is told while no worker can be had: a probe interval at most, engines come back in seconds."""


class Decider:
    """Decides for this node's calls; caches the candidates of each model."""

    def __init__(
        self,
        fleet: Fleet,
        policies: Policies,
        *,
        clock: Clock,
        rng: Rng,
        beginnings: Beginnings | None = None,
        observe: ObserveEncode = unobserved,
    ) -> None:
        self._fleet = fleet
        self._beginnings = beginnings
        self._picker = Picker(policies, fleet.moved, clock=clock, rng=rng, beginnings=beginnings)
        self.at_once: Final = self._picker.at_once
        """Chooses and holds where all is as usual; see `Picker`."""
        self._pair_up = PairSelector(self._picker, clock=clock, rng=rng)
        self._clock = clock
        self._rng = rng
        self._observe = observe
        self._encoders: EncoderSelector | None = None
        self._stages: dict[str, RoleCandidates] = {}

    def stages(self, model: AnyModel, now_s: float, rule: Rule) -> RoleCandidates:
        """Return a model's candidates by role as of `now_s`."""
        found = self._stages.get(model.pool)
        if (
            found is not None
            and found.version == self._fleet.version
            and found.model is model
            and now_s < found.until_s
            and found.fallback is rule.fallback
        ):
            return found
        stages = role_candidates_of(
            self._fleet.version,
            model,
            self._fleet.serving(model),
            now_s,
            zone=rule.zone,
            fallback=rule.fallback,
            before=found,
        )
        self._stages[model.pool] = stages
        return stages

    def stages_for(
        self, model: AnyModel, wish: PlacementRequest, now_s: float, rule: Rule, *, last: bool
    ) -> RoleCandidates:
        """Return the candidates for a call; with `last` it may go where it failed before."""
        stages, fits, avoid = self.stages(model, now_s, rule), wish.fits, wish.avoid
        if stages.prefill is not None and not wish.pair:
            stages = stages.only_alone()
        if (avoid is NOBODY or not avoid) and (fits is None or stages.suits(fits)):
            return stages
        found = stages
        for out in _to_avoid(avoid, last=last):
            found = stages.narrowed(now_s, _but(out, wish), rule.zone)
            if found.open or found.busy:
                break
        return found

    def usual(
        self, model: AnyModel, now_s: float, rule: Rule, *, shed: bool
    ) -> "CachedPlacement | None":
        """Return the cached placement of calls without special needs; None where there is more to
        decide.

        There is more to decide where workers share calls or lie in several zones, where none can be
        chosen, and, with `shed`, where all are overloaded.
        """
        stages = self.stages(model, now_s, rule)
        stage = stages.alone
        if stages.prefill is not None or stage is None or stage.all is None:
            return None
        if stage.near is not None or (shed and stages.strained):
            return None
        part, workers = Part("", model.name, stage.choice or rule.policy), stage.all.workers
        only = workers[0] if len(workers) == 1 else None
        version, until_s = self._fleet.version, stages.until_s
        encoded = stages.encode is not None
        return CachedPlacement(
            version, model, until_s, part, stage.all, stage.dropped, only, encoded
        )

    def find(self, one: PlacementAttempt, now_s: float) -> Reservation | None:
        """Choose and reserve a worker, or a pair, if one can be had now; and encoders of its pictures, where there are."""
        hold = self._found(one, now_s)
        if hold is None or one.stages.encode is None or not one.wish.encodable:
            return hold
        return self._with_encoders(one, hold, now_s)

    def _with_encoders(
        self, one: PlacementAttempt, hold: Reservation, now_s: float
    ) -> Reservation | None:
        """Return the reservation with its encoders; None, counted out, where it must have some and none can be had."""
        if self._encoders is None:
            from smg_node.pipeline.placement.encoder_selection import EncoderSelector

            self._encoders = EncoderSelector(
                self._picker, clock=self._clock, rng=self._rng, observe=self._observe
            )
        try:
            legs = self._encoders.legs(one, hold.caching[0], now_s)
        except BaseException:
            hold.release(now_s)
            raise
        if legs is not None:
            hold.encoded_by(legs)
        elif not one.rule.encode.fallback:
            hold.release(now_s)
            return None
        return hold

    def _found(self, one: PlacementAttempt, now_s: float) -> Reservation | None:
        stages = one.stages
        if stages.pairs is not None:
            return self._pair_up.choose(one, stages.pairs, now_s)
        stage = stages.alone
        if stage is not None:
            rule = one.rule
            choosable = stage.all if stage.near is None else stage.choosable(rule.zone_spill)
            if choosable is not None:
                part = Part("", one.model.name, stage.choice or rule.policy)
                return self._picker.choose(
                    one.model, one.wish, part, choosable, stage.dropped, one.began_s, now_s
                )
            probe = probe_of(stage.sieved, now_s)
            if probe is not None:
                part = Part("", one.model.name, PROBE)
                return self._picker.take(one.wish, part, probe, stage.dropped, one.began_s, now_s)
        return self._pair_up.probe(one, now_s)

    def target(
        self, model: AnyModel, wish: PlacementRequest, now_s: float, rule: Rule
    ) -> Reservation:
        """Reserve the one worker that a client wants, in a pair if it is half of one.

        NOT_FOUND `worker_not_found`, OVERLOADED `worker_unavailable`.
        """
        target = wish.target
        assert target is not None
        worker = self._fleet.get(target)
        breaker = worker.breaker
        usable = breaker.usable(now_s) or breaker.probe_free(now_s, alone=True)
        if worker.serves is model and worker.routable and usable:
            stages = self.stages(model, now_s, rule)
            one = PlacementAttempt(model, wish, stages, rule, now_s)
            hold: Reservation | None = None
            if worker.role == "regular":
                part = Part("", model.name, TARGET)
                hold = self._picker.take(wish, part, worker, stages.regular.dropped, now_s, now_s)
            elif worker.role != "encode" and wish.pair:
                hold = self._pair_up.with_worker(one, worker, now_s)
            if hold is not None and stages.encode is not None and wish.encodable:
                hold = self._with_encoders(one, hold, now_s)
            if hold is not None:
                return hold
        raise SmgError(
            ErrorKind.OVERLOADED,
            f"worker {target!r} cannot take requests for {model.name!r} now",
            code="worker_unavailable",
            retry_after_s=RETRY_AFTER_S,
        )

    # ── What came of it ──────────────────────────────────────────────────────

    def confirmed(self, hold: Reservation, now_s: float) -> None:
        """Record the first token of a call: its prompt lies in that worker's cache."""
        beginning = hold.beginning
        if beginning is not None and beginning.blocks and self._beginnings is not None:
            worker, rank = hold.caching
            self._beginnings.dispatched(beginning, worker.id, now_s, rank=rank)

    def answered(self, hold: Reservation, ids: TokenIds, now_s: float) -> None:
        """Record a worker's answer `ids`: the next turn begins with prompt and answer."""
        beginning, beginnings = hold.beginning, self._beginnings
        if beginning is not None and beginnings is not None:
            worker, rank = hold.caching
            beginnings.answered(beginning, ids, worker.id, now_s, rank=rank)


def _to_avoid(avoid: Avoid, *, last: bool) -> list[frozenset[str]]:
    """Return the workers to exclude: first all that failed, then fewer and fewer."""
    found = [avoid.failed | avoid.gone]
    if avoid.failed:
        found.append(avoid.gone)
    if last and avoid.gone:
        found.append(frozenset())
    return found


def _but(out: frozenset[str], wish: PlacementRequest) -> Refusing:
    fits, why_not = wish.fits, wish.why_not

    def refusing(worker: Worker) -> str:
        if worker.id in out:
            return "failed on it already"
        if fits is None or fits(worker):
            return ""
        return EXCLUDED if why_not is None else why_not(worker)

    return refusing
