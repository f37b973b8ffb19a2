"""Which worker a call goes to, now or not at all: the synchronous half of placing.

Look at all candidates, choose, count the call in, tell its journey: nothing can change in between.
"""

from dataclasses import dataclass, field
from typing import Final, Protocol

from smg_node.core.context import Priority
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.journey import RATED_MAX, Chosen, Journey, Rated, Why
from smg_node.core.ports import Clock, Rng
from smg_node.core.request import TokenIds, token_ids
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.model import AnyModel
from smg_node.fleet.worker import Worker
from smg_node.pipeline.attempts import NOBODY, Avoid
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.sieve import Allowed, probe_of
from smg_node.pipeline.stage import Choosable, Stage, stage_of
from smg_node.routing.known import Policies
from smg_node.routing.policies.consistent_hashing import ConsistentHashing
from smg_node.routing.policies.manual import Manual
from smg_node.routing.policies.sticky import Sticky
from smg_node.routing.policy import Asked, Beginning

RETRY_AFTER_S: Final = 2.0
"""What a client is told while no worker can be had: a probe interval at most, engines come back in seconds."""
PROBE: Final = "probe"
TARGET: Final = "target"
"""Stand for the policy where none was asked."""


@dataclass(slots=True)
class Wish:
    """What one call wants of its worker. Nobody changes it; made for every request, where a frozen one costs 3 µs.

    `prompt_tokens` are counted there (None: as many as `ids` are). With `fits`, only workers that it is true of;
    `avoid` are those that failed the call before. `target` is the one worker its client wants. The rest is what
    policies look at (`routing.policy.Asked`), and what the journey is told.
    """

    deadline_s: float
    ids: TokenIds = field(default_factory=token_ids)
    text: str = ""
    prompt_tokens: int | None = None
    key: str = ""
    caller: str = ""
    client: str = ""
    adapter: str = ""
    priority: Priority = "default"
    target: str | None = None
    fits: Allowed | None = None
    avoid: Avoid = NOBODY
    choice: int = 0
    why: Why = "first"
    journey: Journey | None = None


class Beginnings(Protocol):
    """Prompts before the prefix index."""

    def of(self, model: AnyModel, ids: TokenIds, adapter: str) -> Beginning | None:
        """Return a prompt as the index looks it up; None where the model has no index."""
        ...

    def dispatched(self, beginning: Beginning, worker: str, now_s: float) -> None:
        """Take in that `worker` has worked that prompt off."""
        ...

    def answered(self, beginning: Beginning, ids: TokenIds, worker: str, now_s: float) -> None:
        """Take in that `worker` has answered that prompt with `ids`."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """How a model's calls are placed: by which policy, and when the own zone is left."""

    policy: str
    zone: str = ""
    zone_spill: float = 0.8


@dataclass(slots=True)
class Look:
    """One look for a worker: on what it stands, by which rule, and since when its call waits."""

    model: AnyModel
    wish: Wish
    stage: Stage
    rule: Rule
    began_s: float


class Decider:
    """Decides for this node's calls; keeps a stage for each model."""

    def __init__(
        self,
        fleet: Fleet,
        policies: Policies,
        *,
        clock: Clock,
        rng: Rng,
        beginnings: Beginnings | None = None,
    ) -> None:
        self._fleet = fleet
        self._policies = policies
        self._clock = clock
        self._rng = rng
        self._beginnings = beginnings
        self._stages: dict[str, Stage] = {}

    def stage(self, model: AnyModel, now_s: float, rule: Rule) -> Stage:
        """Return what decisions about a model stand on as of `now_s`."""
        found, version = self._stages.get(model.pool), self._fleet.version
        if found is not None and found.good(version, model, now_s):
            return found
        serving = self._fleet.serving(model)
        stage = stage_of(version, model, serving, now_s, zone=rule.zone, before=found)
        self._stages[model.pool] = stage
        return stage

    def stage_for(
        self, model: AnyModel, wish: Wish, now_s: float, rule: Rule, *, last: bool
    ) -> Stage:
        """Return what a decision about a call stands on; with `last` it may go where it failed before."""
        stage = self.stage(model, now_s, rule)
        fits, avoid = wish.fits, wish.avoid
        if not avoid and (fits is None or all(map(fits, stage.sieved.candidates))):
            return stage
        found = stage
        for out in _to_avoid(avoid, last=last):
            found = stage.narrowed(now_s, _but(out, fits), rule.zone)
            if found.all is not None or found.sieved.busy:
                break
        return found

    def find(self, one: Look, now_s: float) -> Hold | None:
        """Choose and hold a worker, if one can be had now."""
        stage = one.stage
        choosable = stage.choosable(one.rule.zone_spill)
        if choosable is None:
            probe = probe_of(stage.sieved, now_s)
            return None if probe is None else self._take(one, probe, PROBE, now_s)
        return self._choose(one, choosable, now_s)

    def _choose(self, one: Look, choosable: Choosable, now_s: float) -> Hold:
        wish, model, pool = one.wish, one.model, choosable.pool
        beginnings = self._beginnings
        beginning = None
        if beginnings is not None:
            beginning = beginnings.of(model, wish.ids, wish.adapter)
        rated: list[Rated] | None = [] if wish.journey is not None else None
        asked = Asked(
            model.name,
            wish.key,
            wish.caller,
            wish.client,
            wish.ids,
            wish.text,
            now_s,
            beginning,
            rated,
        )
        policy = self._policies.named(one.rule.policy)
        at = policy.choose(asked, pool, self._rng)
        keyed = bool(wish.key) and isinstance(policy, Sticky | Manual | ConsistentHashing)
        overlap = beginning.overlaps(pool)[at] if beginning is not None else 0.0
        hold = self._take(
            one,
            choosable.workers[at],
            one.rule.policy,
            now_s,
            of=len(choosable.workers),
            rated=rated,
            keyed=keyed,
            overlap=overlap,
        )
        hold.beginning = beginning
        return hold

    def _take(
        self,
        one: Look,
        worker: Worker,
        policy: str,
        now_s: float,
        *,
        of: int = 1,
        rated: list[Rated] | None = None,
        keyed: bool = False,
        overlap: float = 0.0,
    ) -> Hold:
        """Count the call in, and tell its journey."""
        assert worker.engine is not None
        assert worker.card is not None
        wish = one.wish
        prompt = len(wish.ids) if wish.prompt_tokens is None else wish.prompt_tokens
        tokens = max(0, prompt - int(overlap))
        probe = worker.breaker.take_probe(now_s)
        ahead = worker.hold(tokens)
        alone = worker.load.inflight == 1
        if wish.journey is not None:
            wish.journey.add(
                Chosen(
                    at_ms=self._clock.now_ms(),
                    choice=wish.choice,
                    why=wish.why,
                    worker=worker.id,
                    policy=policy,
                    of=of,
                    rated=tuple(rated[:RATED_MAX]) if rated else (),
                    dropped=one.stage.dropped,
                    waited_ms=round((now_s - one.began_s) * 1000),
                    key=keyed,
                    prompt_tokens=prompt,
                )
            )
        return Hold(worker, worker.engine, worker.card, prompt, tokens, now_s, ahead, probe, alone)

    def target(self, model: AnyModel, wish: Wish, now_s: float, rule: Rule) -> Hold:
        """Hold the one worker that a client wants: NOT_FOUND `worker_not_found`, OVERLOADED `worker_unavailable`."""
        target = wish.target
        assert target is not None
        worker = self._fleet.get(target)
        breaker = worker.breaker
        usable = breaker.usable(now_s) or breaker.probe_free(now_s, alone=True)
        if worker.serves is not model or not worker.routable or not usable:
            raise SmgError(
                ErrorKind.OVERLOADED,
                f"worker {target!r} cannot take requests for {model.name!r} now",
                code="worker_unavailable",
                retry_after_s=RETRY_AFTER_S,
            )
        stage = self.stage(model, now_s, rule)
        return self._take(Look(model, wish, stage, rule, now_s), worker, TARGET, now_s)

    def confirmed(self, hold: Hold, now_s: float) -> None:
        """Take in that the first token of a call came: its prompt lies in that worker's cache."""
        if hold.beginning is not None and self._beginnings is not None:
            self._beginnings.dispatched(hold.beginning, hold.worker.id, now_s)

    def answered(self, hold: Hold, ids: TokenIds, now_s: float) -> None:
        """Take in that a worker has answered with `ids`: the next turn begins with prompt and answer."""
        if hold.beginning is not None and self._beginnings is not None:
            self._beginnings.answered(hold.beginning, ids, hold.worker.id, now_s)


def _to_avoid(avoid: Avoid, *, last: bool) -> list[frozenset[str]]:
    """Return who is to be passed over: first all that failed, then fewer and fewer."""
    found = [avoid.failed | avoid.gone]
    if avoid.failed:
        found.append(avoid.gone)
    if last and avoid.gone:
        found.append(frozenset())
    return found


def _but(out: frozenset[str], fits: Allowed | None) -> Allowed:
    def allowed(worker: Worker) -> bool:
        return worker.id not in out and (fits is None or fits(worker))

    return allowed
