"""N nodes in front of M equal engines on virtual time: real policies and load views, calls by Poisson's law.

An engine works prompts off one after the other, and then answers in a slot; it says once a second how it is.
Nodes tell each other four times a second what they have open, and are heard a little later. With one node that
is told at once, the router is omniscient.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

from smg_node.engines.load import Load
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.policy import Asked, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool

TELL_S = 0.25
TRAVEL_S = 0.15
SAMPLE_S = 1.0


@dataclass(frozen=True)
class Herd:
    """What runs. `busy` is the share asked for of what the engines can do: of prefill, or of slots if that is less."""

    nodes: int = 8
    engines: int = 16
    policy: str = "least_load"
    options: PolicyOptions = field(default_factory=PolicyOptions)
    busy: float = 0.7
    prompt_tokens: int = 2_000
    rate: float = 8_000.0
    answer_s: float = 5.0
    slots: int = 64
    run_s: float = 60.0
    warm_s: float = 15.0
    seed: int = 1
    omniscient: bool = False
    samples: bool = True
    sharing: bool = True
    credit: bool = True
    """Without it a node counts nothing: between two samples it forgets what it sent."""


@dataclass
class Call:
    node: int
    engine: int
    tokens: int
    began_s: float


@dataclass
class Engine:
    """One prompt at a time, `slots` answers at once."""

    herd: Herd
    waiting: deque[Call] = field(default_factory=deque)
    prefilling: Call | None = None
    running: int = 0

    @property
    def open(self) -> int:
        return len(self.waiting) + (self.prefilling is not None) + self.running

    def load(self) -> Load:
        pending = sum(call.tokens for call in self.waiting)
        return Load(
            rank=0,
            running=self.running + (self.prefilling is not None),
            waiting=len(self.waiting),
            running_max=self.herd.slots,
            waiting_uncached_tokens=pending,
            kv_usage=self.running / self.herd.slots,
            tokens_per_s=None,
            cache_hit_rate=None,
        )


@dataclass
class Report:
    """What came of it: seconds until a prompt was begun with, prompts before it, and how even it was."""

    waits_s: list[float] = field(default_factory=list)
    queues: list[int] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)

    def wait_p99_s(self) -> float:
        return _p99(self.waits_s)

    def wait_mean_s(self) -> float:
        return fmean(self.waits_s)

    def queue_p99(self) -> float:
        return _p99(self.queues)

    def open_p99(self) -> float:
        return _p99(self.opened)

    def peak_to_mean(self) -> float:
        return fmean(self.peaks)


class Node:
    """One gateway: its own numbers at once, everybody else's late."""

    def __init__(self, herd: Herd, at: int) -> None:
        self.loads = [WorkerLoad(f"w{at:02}") for at in range(herd.engines)]
        self.pool = Pool(self.loads)
        self.policy = Policies(OwnBindings(), herd.options).named(herd.policy)
        self.rng = random.Random(f"{herd.seed}-{at}")

    def choose(self, now_s: float, tokens: int, number: int) -> int:
        text = f"{number:08}" + "x" * (4 * tokens - 8)
        return self.policy.choose(Asked("m", text=text, now_s=now_s), self.pool, self.rng)


class Run:
    """One run of a herd."""

    def __init__(self, herd: Herd) -> None:
        self.herd = herd
        self.report = Report()
        self._rng = random.Random(herd.seed)
        count = 1 if herd.omniscient else herd.nodes
        self._nodes = [Node(herd, at) for at in range(count)]
        self._engines = [Engine(herd) for _ in range(herd.engines)]
        self._said: dict[int, list[tuple[int, int]]] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._calls = 0
        self.now_s = 0.0

    def run(self) -> Report:
        herd = self.herd
        self._at(0.0, self._arrive)
        if herd.sharing and not herd.omniscient:
            for at in range(len(self._nodes)):
                self._at(TELL_S * (at + 1) / len(self._nodes), lambda at=at: self._tell(at))  # type: ignore[misc]  # bound now
        if herd.samples:
            for at in range(herd.engines):
                self._at(SAMPLE_S * (at + 1) / herd.engines, lambda at=at: self._sample(at))  # type: ignore[misc]  # bound now
        while self._events and self._events[0][0] <= herd.run_s:
            self.now_s, _, act = heapq.heappop(self._events)
            act()
        return self.report

    def _at(self, when_s: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when_s, self._count, act))

    def _arrive(self) -> None:
        herd, rng = self.herd, self._rng
        per_s = (
            herd.busy
            * herd.engines
            * min(herd.rate / herd.prompt_tokens, herd.slots / herd.answer_s)
        )
        self._at(self.now_s + rng.expovariate(per_s), self._arrive)
        tokens = 64 + int(rng.expovariate(1 / (herd.prompt_tokens - 64)))
        at = rng.randrange(herd.nodes) % len(self._nodes)
        self._calls += 1
        chosen = self._nodes[at].choose(self.now_s, tokens, self._calls)
        if herd.credit:
            self._nodes[at].loads[chosen].begin(tokens)
        engine = self._engines[chosen]
        if self.now_s >= herd.warm_s:
            before = len(engine.waiting) + (engine.prefilling is not None)
            self.report.queues.append(before)
            self.report.opened.append(engine.open)
            opened = [one.open for one in self._engines]
            if sum(opened):
                self.report.peaks.append(max(opened) / fmean(opened))
        engine.waiting.append(Call(at, chosen, tokens, self.now_s))
        self._go_on(engine)

    def _go_on(self, engine: Engine) -> None:
        """Begin with the next prompt, if nothing is in its way."""
        if engine.prefilling is not None or not engine.waiting or engine.running >= self.herd.slots:
            return
        call = engine.prefilling = engine.waiting.popleft()
        if call.began_s >= self.herd.warm_s:
            self.report.waits_s.append(self.now_s - call.began_s)
        self._at(self.now_s + call.tokens / self.herd.rate, lambda: self._first_token(engine))

    def _first_token(self, engine: Engine) -> None:
        call, engine.prefilling = engine.prefilling, None
        assert call is not None
        engine.running += 1
        if self.herd.credit:
            self._nodes[call.node].loads[call.engine].prefilled(call.tokens)
        takes_s = self._rng.expovariate(1 / self.herd.answer_s)
        self._at(self.now_s + takes_s, lambda: self._end(engine, call))
        self._go_on(engine)

    def _end(self, engine: Engine, call: Call) -> None:
        engine.running -= 1
        if self.herd.credit:
            self._nodes[call.node].loads[call.engine].end(
                call.tokens, prefilled=True, seconds=self.now_s - call.began_s
            )
        self._go_on(engine)

    def _sample(self, at: int) -> None:
        said = self._engines[at].load()
        for node in self._nodes:
            node.loads[at].sample(said, self.now_s)
        self._at(self.now_s + SAMPLE_S, lambda: self._sample(at))

    def _tell(self, at: int) -> None:
        said = [(one.own_inflight, one.own_tokens) for one in self._nodes[at].loads]
        self._at(self.now_s + TRAVEL_S, lambda: self._hear(at, said))
        self._at(self.now_s + TELL_S, lambda: self._tell(at))

    def _hear(self, who: int, said: list[tuple[int, int]]) -> None:
        """Let all others hear what `who` has open at each engine, if that is something else than before."""
        before = self._said.get(who, [(0, 0)] * len(said))
        self._said[who] = said
        for engine, (was, now) in enumerate(zip(before, said, strict=True)):
            if was == now:
                continue
            for at, node in enumerate(self._nodes):
                if at != who:
                    one = node.loads[engine]
                    one.hear(
                        one.inflight - one.own_inflight + now[0] - was[0],
                        one.tokens - one.own_tokens + now[1] - was[1],
                    )


def _p99(values: "list[float] | list[int]") -> float:
    ranked = sorted(values)
    return float(ranked[min(len(ranked) - 1, int(0.99 * len(ranked)))])
