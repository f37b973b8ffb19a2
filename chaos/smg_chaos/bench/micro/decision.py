"""Decision benchmark (`smg-chaos decision`): CPU time of choosing a worker for a request.

A decision is all that lies between "this request is next" and "this call is counted in": what can
be chosen now, the prompt's blocks hashed and looked up, the policy, the counting in, and the
journey that `smg-admin explain` shows. Prompts are of three kinds: *short*, less than a block, so
that no index is asked; *new*, 4,600 tokens that no worker has; *cached*, 4,600 tokens of which
every 16th worker has three quarters.

The *choice* is the part of it that grows with the fleet: the policy's, with its worker counted in.

Around it, on virtual time, stands a fleet that is half busy: calls get their first token and end,
engines report their load once a second, and further nodes have as much open everywhere as this one,
whose requests that are still on their way must be taken into account. None of that is measured.

A row's figures are of short bursts of decisions, so that looking at the clock counts for little;
the rows take turns, so that what else the machine does meets all of them alike.
"""

import json
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from statistics import median
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, get_args

import typer

from smg_node.config.worker_url import parse_worker_url
from smg_node.core.generation.request import TokenIds
from smg_node.core.journey import Journey, Ratings
from smg_node.engines.engine import Contract, Engine, ModelCard
from smg_node.engines.kv_events import Tier
from smg_node.engines.load import Load
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.health.circuit_breaker import Breaker, BreakerOptions
from smg_node.fleet.load.worker_load import PREFILL_RATE, WorkerLoad
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.fleet.models.served_model import AnyModel, RelayedModel
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_spec import DeclaredWorker
from smg_node.pipeline.placement.decider import Decider, PlacementAttempt, PlacementRequest, Rule
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.kv_index.block_hash import chain, root_of, seed_of
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.policy import Asked
from smg_node.routing.policy_registry import OwnBindings, Policies

Prompt: TypeAlias = Literal["short", "new", "cached"]
POLICIES: Final = ("cache_aware", "least_load", "power_of_two", "prefix_hash", "round_robin")
WORKERS: Final = (8, 64)
_TOKENS: Final[dict[Prompt, int]] = {"short": 48, "new": 4_600, "cached": 4_600}
_PROMPTS: Final = 64
_CAPACITY: Final = 64
_REQUEST_S: Final = 8.0
_FIRST_S: Final = 0.02
_BUSY: Final = 0.5
_BURST: Final = 16
_CLUSTER: Final = "bench"


@dataclass(frozen=True, slots=True)
class Case:
    """One row: the policy, the number of workers, and the kind of prompt."""

    policy: str
    workers: int
    prompt: Prompt
    nodes: int = 2

    @property
    def pause_s(self) -> float:
        """Virtual seconds between this node's requests."""
        tokens = _TOKENS[self.prompt]
        each_s = _BUSY * min(PREFILL_RATE / tokens, _CAPACITY / _REQUEST_S)
        return self.nodes / (self.workers * each_s)


class Scene:
    """State of one case, which continues from round to round."""

    def __init__(self, case: Case, seed: int = 1) -> None:
        self.now_s = 1_000.0
        self._rng = Random(seed)
        self.moved: list[WorkerLoad] = []
        """Nobody: a choice without the placing around it is measured too, so its workers are always weighed."""
        self._pause_s = case.pause_s
        self._others = case.nodes - 1
        self._model = RelayedModel("bench", 0, ModelSettings())
        self.workers = [self._worker(at) for at in range(case.workers)]
        self.workers.sort(key=lambda worker: worker.id)
        index = PrefixIndex()
        count = _TOKENS[case.prompt]
        self._prompts = [array("I", self._rng.randbytes(4 * count)) for _ in range(_PROMPTS)]
        self._cache(index, cached=case.prompt == "cached")
        policies = Policies(OwnBindings())
        self._policy = policies.named(case.policy)
        self._prefixes = Prefixes(index, cluster=_CLUSTER)
        self._decider = Decider(
            # It is asked for a version and for the workers of a model.
            cast("Fleet", self),
            policies,
            clock=self,
            rng=self._rng,
            beginnings=self._prefixes,
        )
        self._rule = Rule(case.policy)
        self._asked = 0
        self._rested = True
        """Whether calls are to go on before it chooses again."""
        self._due: list[tuple[float, int, Reservation]] = []

    def _worker(self, at: int) -> Worker:
        declared = DeclaredWorker(parse_worker_url(f"http://10.0.{at // 250}.{1 + at % 250}:80"))
        worker = Worker(
            declared, WorkerLoad(declared.id), Breaker(BreakerOptions(), self._rng), Status.READY
        )
        worker.relayed = self._model
        worker.card = ModelCard(Contract.OPENAI, "bench", "", None, None, None, ())
        # Deciding never calls it.
        worker.engine = cast("Engine", object())
        worker.load.sized(_CAPACITY)
        return worker

    def _cache(self, index: PrefixIndex, *, cached: bool) -> None:
        """Fill every worker's cache; with `cached` also with some of the prompts."""
        root = root_of("bench", self._model.bundle_digest, seed=seed_of(_CLUSTER))
        for worker in self.workers:
            index.stored(
                worker.id, chain(root, array("I", self._rng.randbytes(4 * 4_600))), Tier.DEVICE, 0.0
            )
        for ids in self._prompts if cached else ():
            hashes = chain(root, ids)
            for worker in self._rng.sample(self.workers, max(1, len(self.workers) // 16)):
                index.stored(worker.id, hashes[: len(hashes) * 3 // 4], Tier.DEVICE, 0.0)

    # ── What a decider asks ──────────────────────────────────────────────────

    version = 1

    def serving(self, model: AnyModel) -> Sequence[Worker]:
        """See `Fleet.serving`."""
        assert model is self._model
        return self.workers

    def monotonic_s(self) -> float:
        """See `Clock`."""
        return self.now_s

    def now_ms(self) -> int:
        """See `Clock`."""
        return round(1000 * self.now_s)

    # ── Time ─────────────────────────────────────────────────────────────────

    def burst(self) -> float:
        """Decide some times; return the CPU time of one, in seconds."""
        wishes = [self._wish() for _ in range(_BURST)]
        for _ in wishes:
            self._pass(self._pause_s)
        decider, model, rule, now_s = self._decider, self._model, self._rule, self.now_s
        holds: list[Reservation | None] = []
        start_ns = time.thread_time_ns()
        for wish in wishes:
            stages = decider.stages_for(model, wish, now_s, rule, last=False)
            holds.append(decider.find(PlacementAttempt(model, wish, stages, rule, now_s), now_s))
        took_s = (time.thread_time_ns() - start_ns) / _BURST / 1e9
        for hold in holds:
            assert hold is not None, "a fleet that is half busy has room"
            self._go_on(hold)
        return took_s

    def choices(self) -> float:
        """Choose some times, and some times more; return the CPU time of one of these, in seconds.

        The first ones bring code and fleet back into the processor's caches, as a node does that has much to do.
        """
        self._choices()
        return self._choices()

    def _choices(self) -> float:
        wishes = [self._wish() for _ in range(_BURST)]
        if self._rested:
            for _ in range(2 * _BURST):
                self._pass(self._pause_s)
        self._rested = not self._rested
        now_s, policy, rng = self.now_s, self._policy, self._rng
        choosable = self._decider.stages(self._model, now_s, self._rule).regular.all
        assert choosable is not None, "a fleet that is half busy has room"
        workers, pool = choosable.workers, choosable.pool
        chosen: list[tuple[Worker, int]] = []
        start_ns = time.thread_time_ns()
        for wish in wishes:
            beginning = self._prefixes.of(self._model, wish.ids, "", now_s)
            asked = Asked("bench", "", "", "", wish.ids, "", now_s, beginning, Ratings())
            worker, tokens = workers[policy.choose(asked, pool, rng)], len(wish.ids)
            worker.hold(tokens)
            chosen.append((worker, tokens))
        took_s = (time.thread_time_ns() - start_ns) / _BURST / 1e9
        for worker, tokens in chosen:
            assert worker.engine is not None
            assert worker.card is not None
            self._go_on(Reservation(worker, worker.engine, worker.card, tokens, tokens, now_s))
        return took_s

    def _go_on(self, hold: Reservation) -> None:
        """Deliver a call's first token when its worker comes to it, and end it later."""
        load = hold.worker.load
        self._asked += 1
        first_s = self.now_s + load.wait_s + hold.tokens / load.prefill_rate + _FIRST_S
        heappush(self._due, (first_s, 2 * self._asked, hold))
        heappush(self._due, (first_s + _REQUEST_S, 2 * self._asked + 1, hold))

    def _wish(self) -> PlacementRequest:
        journey = Journey("request", "node", "chat", "bench", 0)
        ids: TokenIds = self._rng.choice(self._prompts)
        return PlacementRequest(self.now_s + 600, ids, journey=journey)

    def _pass(self, seconds: float) -> None:
        """Deliver first tokens and ends of calls, and load reports of engines."""
        before_s, self.now_s = self.now_s, self.now_s + seconds
        while self._due and self._due[0][0] <= self.now_s:
            at_s, number, hold = heappop(self._due)
            if number % 2:
                hold.ended(at_s)
                hold.release(at_s)
            else:
                hold.spoke(at_s)
        count = len(self.workers)
        for tick in range(int(before_s * count), int(self.now_s * count)):
            load = self.workers[tick % count].load
            load.hear(self._others * load.own_inflight, self._others * load.own_tokens)
            kv = min(0.9, 0.2 + 0.5 * load.inflight / _CAPACITY)
            said = Load(0, load.inflight, 0, None, None, kv, None, None)
            load.sample(said, self.now_s)


def measure(
    cases: Sequence[Case], *, rounds: int, bursts: int, scene: type[Scene] = Scene
) -> list[dict[str, Any]]:
    """Return a row for each case: the median of its rounds' medians, the best and the worst of those."""
    scenes = [scene(case) for case in cases]
    for one in scenes:
        for _ in range(bursts):
            one.burst()
    medians: list[list[float]] = [[] for _ in scenes]
    chosen: list[list[float]] = [[] for _ in scenes]
    for _ in range(rounds):
        for one, found, choices in zip(scenes, medians, chosen, strict=True):
            found.append(1e6 * median(one.burst() for _ in range(bursts)))
            choices.append(1e6 * median(one.choices() for _ in range(bursts)))
    return [
        {
            "policy": case.policy,
            "workers": case.workers,
            "prompt": case.prompt,
            "choice_us": median(choices),
            "median_us": median(found),
            "best_us": min(found),
            "worst_us": max(found),
        }
        for case, found, choices in zip(cases, medians, chosen, strict=True)
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as text."""
    lines = ["CPU us of a decision: median of the rounds' medians (best to worst round)"]
    for row in rows:
        spread = f"{row['best_us']:.1f} to {row['worst_us']:.1f}"
        lines.append(
            f"  {row['policy']:18} {row['workers']:3} workers, {row['prompt']:6} prompt "
            f"{row['median_us']:6.1f} ({spread:12}), of it the choice {row['choice_us']:5.1f}"
        )
    return "\n".join(lines)


def decision(
    policies: Annotated[list[str] | None, typer.Option("--policy", help="only these")] = None,
    rounds: Annotated[int, typer.Option(help="rounds in which all rows take turns", min=1)] = 9,
    bursts: Annotated[int, typer.Option(help="of 16 decisions, in a round of a row", min=1)] = 50,
    nodes: Annotated[int, typer.Option(help="that send to these workers", min=1)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure what a decision costs, for policies, 8 and 64 workers, and three kinds of prompt."""
    cases = [
        Case(policy, workers, prompt, nodes)
        for policy in policies or POLICIES
        for workers in WORKERS
        for prompt in get_args(Prompt)
    ]
    rows = measure(cases, rounds=rounds, bursts=bursts)
    print(json.dumps(rows, indent=2) if as_json else table(rows))


app: Final = typer.Typer(add_completion=False)
app.command(name="decision")(decision)
