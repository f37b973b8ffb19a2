"""World: clients, gateway nodes and engines on virtual time, and the messages between them.

    engine -> node    KV events after each step, 5 ms later; its load once a second. Up to three nodes follow every
                      engine, of more the two that rendezvous hashing names; the others ask for loads every 2 s
    node -> node      what it has open, at most every 250 ms and only if it changed, 20 to 200 ms on the way; what
                      it heard of caches, every 250 ms, to nodes that do not follow that engine themselves

Requests come to nodes at random, turn by turn: no session stays at one node. A node's decisions
take no time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from random import Random
from typing import Final, TypeAlias

from smg_chaos.engine.cache.blocks import Change
from smg_chaos.routing.model.cache_knowledge import Blind, Indexed, batch_of
from smg_chaos.routing.model.engine import Engine, Job
from smg_chaos.routing.model.gateway import MODEL, Gateway
from smg_chaos.routing.model.omniscient_router import soonest
from smg_chaos.routing.model.prefix_hints import Hints
from smg_chaos.routing.model.trial_plan import OMNISCIENT, Plan
from smg_chaos.routing.model.trial_result import Result, Seen
from smg_chaos.routing.model.virtual_clock import Agenda
from smg_chaos.routing.model.workload import Turn, Workload
from smg_mesh.state.prober_selection import probers

_EVENT_S: Final = 0.005
_SAMPLE_S: Final = 1.0
_POLL_S: Final = 2.0
_GOSSIP_S: Final = 0.25
_WAY_S: Final = (0.02, 0.2)
_LOOK_S: Final = 0.5
_DRAIN_S: Final = 120.0
"""So long whoever was asked last may take for its first token, where everything is too slow."""

_Told: TypeAlias = Callable[[Job, float], None]


def _nobody(job: Job, now_s: float) -> None:
    """Report to no node: an omniscient router sees it."""


def tried(plan: Plan) -> Result:
    """Run one trial."""
    return World(plan).run()


class World:
    """One trial."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._seen = Seen(plan.policy, plan.node_count, plan.size.block)
        self._agenda = Agenda()
        self._rng = Random(f"{plan.seed}/world")
        self.engines = [
            Engine(name, plan.size, self._agenda, self._changed) for name in plan.engines
        ]
        self._workload = Workload(plan.seed, plan.sessions_per_s, plan.seconds, plan.size)
        self._batches = {name: count(1) for name in plan.engines}
        names = [(node, "") for node in plan.nodes]
        self._followers = {engine: probers(engine, names) for engine in plan.engines}
        routed = plan.nodes if plan.policy != OMNISCIENT else []
        self._indexes = {name: self._index(name) for name in routed if plan.has_index}
        self.nodes = {name: self._node(name) for name in routed}
        self._said: dict[str, Mapping[str, tuple[int, int]]] = {}

    @property
    def now_s(self) -> float:
        """The time of this world."""
        return self._agenda.now_s

    def _index(self, node: str) -> Indexed:
        events = self._plan.has_events
        return Indexed(MODEL, [one for one, by in self._followers.items() if events and node in by])

    def _node(self, name: str) -> Gateway:
        plan = self._plan
        return Gateway(
            name,
            plan.engines,
            plan.policy_name,
            self._indexes.get(name, Blind()),
            Random(f"{plan.seed}/{name}"),
            options=plan.options(name),
            slots=plan.size.slots,
        )

    def run(self) -> Result:
        """Run the trial; return the measurements."""
        plan = self._plan
        for number, at_s in enumerate(self._workload.begins_s):
            self._agenda.at(at_s, self._next, self._workload.session(number))
        for node in self.nodes.values():
            self._every(_GOSSIP_S, self._gossip, node)
            self._every(_SAMPLE_S, self._tick, node)
        for engine in self.engines:
            self._every(_SAMPLE_S, self._sampled, engine)
            self._every(_POLL_S, self._polled, engine)
        if plan.shares:
            for name, index in self._indexes.items():
                speaks = [one for one, by in self._followers.items() if by[0] == name]
                hints = Hints(index, speaks if plan.has_events else None)
                self._every(_GOSSIP_S, self._share, name, hints)
        self._agenda.at(plan.warm_s, self._look)
        self._agenda.run(plan.seconds + _DRAIN_S)
        return self._seen.result()

    def _every(self, seconds: float, deed: Callable[..., None], *arguments: object) -> None:
        """Repeat something at an interval, from a start time that differs from all others."""

        def again() -> None:
            deed(*arguments)
            self._agenda.after(seconds, again)

        self._agenda.after(self._rng.uniform(0, seconds), again)

    # ── Requests ─────────────────────────────────────────────────────────────

    def _next(self, turns: Iterator[Turn]) -> None:
        turn = next(turns, None)
        if turn is not None and turn.due_s < self._plan.seconds:
            self._agenda.at(turn.due_s, self._ask, turn, turns)

    def _ask(self, turn: Turn, turns: Iterator[Turn]) -> None:
        agenda, seen = self._agenda, self._seen
        now_s = agenda.now_s
        counts = now_s >= self._plan.warm_s
        seen.asks(turn, counts=counts)
        worker, first, ended = self._placed(turn)

        def begun(job: Job) -> None:
            if counts:
                seen.answered(job.cached, agenda.now_s - now_s)
            first(job, agenda.now_s)

        def over(job: Job) -> None:
            ended(job, agenda.now_s)
            self._next(turns)

        worker.submit(Job(turn.ids, turn.prompt, turn.keys, first=begun, ended=over))

    def _placed(self, turn: Turn) -> tuple[Engine, _Told, _Told]:
        """Choose an engine for a turn; return it, and the callbacks for the first token and for the
        end.
        """
        if not self.nodes:
            engine = soonest(self.engines, turn, self._agenda.now_s)
            return engine, _nobody, _nobody
        node = self.nodes[self._rng.choice(self._plan.nodes)]
        placed = node.place(turn.ids[: turn.prompt], f"session-{turn.session}", self._agenda.now_s)
        engine = self.engines[self._plan.engines.index(placed.worker)]
        return engine, placed.first, placed.ended

    # ── What is told ─────────────────────────────────────────────────────────

    def _changed(self, engine: Engine, changes: Sequence[Change]) -> None:
        if not self._plan.has_events or not self.nodes:
            return
        batch = batch_of(next(self._batches[engine.name]), changes)
        due_s = self._agenda.now_s + _EVENT_S
        for node in self._followers[engine.name]:
            self._agenda.at(due_s, self.nodes[node].knowledge.heard, engine.name, batch, due_s)

    def _sampled(self, engine: Engine) -> None:
        for name in self._followers[engine.name]:
            self._tell_load(engine, name)

    def _polled(self, engine: Engine) -> None:
        for name in self._plan.nodes:
            if name not in self._followers[engine.name]:
                self._tell_load(engine, name)

    def _tell_load(self, engine: Engine, name: str) -> None:
        if name in self.nodes:
            self.nodes[name].sample(engine.name, engine.load(), self._agenda.now_s)

    def _gossip(self, node: Gateway) -> None:
        said = node.open()
        if said != self._said.get(node.name):
            self._said[node.name] = said
            for other in self.nodes.values():
                if other is not node:
                    self._agenda.after(self._rng.uniform(*_WAY_S), other.hear, node.name, said)

    def _share(self, name: str, hints: Hints) -> None:
        tell = hints.taken()
        for other, index in self._indexes.items():
            if other != name:
                due_s = self._agenda.now_s + self._rng.uniform(*_WAY_S)
                self._agenda.at(due_s, tell, index, due_s)

    def _tick(self, node: Gateway) -> None:
        node.tick(self._agenda.now_s)

    def _look(self) -> None:
        self._seen.looks.append([engine.open for engine in self.engines])
        if self._agenda.now_s + _LOOK_S < self._plan.seconds:
            self._agenda.after(_LOOK_S, self._look)
