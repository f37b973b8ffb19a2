"""Discovery world: nodes with real registries and source runs on virtual time, over namespaces that can be cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from smg_mesh.state.prober_selection import probers
from smg_mesh.state.workers.worker_registry import WorkerRegistry
from smg_node.cluster.workers.discovered_workers import DiscoveredWorkers
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.config.worker_url import parse_worker_url
from smg_node.discovery.sighting import Endpoint, Sighting, SightingState, View
from smg_node.discovery.source_run import SourceRun, Steps
from support.state.fake_namespace import FakeNamespaces

KIND, NAME = "kubernetes", "chat"
START_MS = 100_000
REPORT_TTL_MS = 15_000


@dataclass
class Truth:
    """What there is: pods by host, as an API server has them, with what happened lately."""

    pods: dict[str, tuple[SightingState, str]] = field(default_factory=dict)
    away_for: set[str] = field(default_factory=set)
    """Nodes that the API server does not answer."""
    silent_for: set[str] = field(default_factory=set)
    """Nodes whose watch is open, and brings nothing."""
    selected: dict[str, set[str]] = field(default_factory=dict)
    """Which hosts a source selects, by its name; all of them where it is not in here."""

    def sightings(self, name: str) -> dict[Endpoint, Sighting]:
        """Return what a source shows of it."""
        return {
            f"{host}:1": Sighting(parse_worker_url(f"{host}:1"), state, instance)
            for host, (state, instance) in self.pods.items()
            if host in self.selected.get(name, {host})
        }


@dataclass
class Told:
    """One node's report, as others hear it."""

    standing: str
    since_ms: int
    at_ms: int
    fields: Mapping[str, object]


class Reports:
    """One node's side of what all report; those that cannot be reached are not heard."""

    def __init__(self, world: "DiscoveryWorld", me: str) -> None:
        self._world = world
        self._me = me

    def publish(self, kind: str, name: str, fields: Mapping[str, object]) -> None:
        now_ms = self._world.now_ms
        standing, since_ms = str(fields["standing"]), cast(int, fields["since_ms"])
        told = Told(standing, now_ms - since_ms, now_ms, fields)
        for other in self._world.reached_by(self._me):
            self._world.told[other][name, self._me] = told

    def withdraw(self, kind: str, name: str) -> None:
        for other in self._world.reached_by(self._me):
            self._world.told[other].pop((name, self._me), None)

    def of(self, kind: str, name: str) -> Mapping[str, Any]:
        now_ms, living = self._world.now_ms, self._world.living(self._me)
        return {
            node: SimpleNamespace(standing=told.standing, since_ms=now_ms - told.since_ms)
            for (one, node), told in sorted(self._world.told[self._me].items())
            if one == name and node in living and now_ms - told.at_ms < REPORT_TTL_MS
        }

    def contested(self, kind: str, name: str) -> bool:
        return any(
            told.fields["writing"] and told.fields["refused"]
            for (one, node), told in self._world.told[self._me].items()
            if one != name and self._world.now_ms - told.at_ms < REPORT_TTL_MS
        )

    def ranked(self, kind: str, name: str, nodes: Sequence[str]) -> Sequence[str]:
        return probers(f"{kind}/{name}", [(node, "") for node in nodes], all_up_to=len(nodes))


class ScriptedSource:
    """One node's watch: events arrive late, bookmarks once a minute, and it fails while the server is away.

    Events of a silent watch are lost; a silence of 90 s is noticed, and then there is a list.
    """

    def __init__(self, world: "DiscoveryWorld", me: str, name: str) -> None:
        self._world = world
        self._me = me
        self._name = name
        self.watching = False
        self._restarts = 0
        self._list_ms = 0
        self._view: View | None = None
        self._due: list[tuple[int, dict[Endpoint, Sighting]]] = []
        self._lost = False
        self._heard_ms = 0

    def attend(self, run: SourceRun) -> None:
        """Begin, end or begin anew to watch, as the run says."""
        begins = run.watching and (not self.watching or run.restarts != self._restarts)
        if begins:
            self._view, self._due, self._lost = None, [], False
            self._list_ms = self._world.now_ms + self._world.rng.randrange(10, 300)
        self.watching, self._restarts = run.watching, run.restarts

    def happened(self) -> None:
        """Something changed at the API server: this watch hears of it a little later."""
        world = self._world
        if self._me in world.truth.silent_for or self._me in world.paused:
            self._lost = True
        elif self.watching and not self._lost and self._me not in world.truth.away_for:
            at_ms = self._world.now_ms + self._world.rng.randrange(1, 400)
            latest = max([at_ms, *(due for due, _ in self._due)])
            self._due.append((latest, self._world.truth.sightings(self._name)))

    def tick(self, run: SourceRun) -> None:
        """Show what has arrived."""
        now_ms, world = self._world.now_ms, self._world
        if not self.watching:
            return
        if self._me in world.truth.away_for:
            self._fail(run, now_ms)
        elif self._list_ms and now_ms >= self._list_ms and self._me not in world.truth.silent_for:
            whole = View(world.truth.sightings(self._name), whole_ms=now_ms)
            self._list_ms, self._due, self._lost = 0, [], False
            self._show(run, whole)
        elif self._view is not None and self._due and self._due[0][0] <= now_ms:
            _, sightings = self._due.pop(0)
            gone = (self._view.gone | set(self._view.sightings)) - set(sightings)
            view = View(sightings, self._view.whole_ms, frozenset(gone))
            self._show(run, view)
        elif self._lost or self._me in world.truth.silent_for:
            if now_ms - self._heard_ms > 90_000 and not self._list_ms:
                self._list_ms = now_ms + 100
        elif self._view is not None and not self._due and now_ms - self._view.whole_ms > 60_000:
            # A bookmark: what came before it is all there was.
            self._show(run, View(self._view.sightings, now_ms, self._view.gone))

    def _fail(self, run: SourceRun, now_ms: int) -> None:
        if self._view is None or not self._view.failing_since_ms:
            before = self._view or View({})
            self._due, self._list_ms = [], now_ms
            told = (before.sightings, before.whole_ms, before.gone, "no answer", now_ms)
            self._show(run, View(*told))

    def _show(self, run: SourceRun, view: View) -> None:
        self._view, self._heard_ms = view, self._world.now_ms
        run.shown(view, self._world.now_ms)


class WorldSource:
    """One source on one node: its watch, its run, and its turns."""

    def __init__(self, world: "DiscoveryWorld", node: "WorldNode", name: str) -> None:
        self.source = ScriptedSource(world, node.name, name)
        self.run = SourceRun(
            KIND,
            name,
            me=node.name,
            registry=node.findings,
            reports=Reports(world, node.name),
            empty_confirm_ms=world.confirm_ms,
            now_ms=world.now_ms,
        )
        self.steps: Steps | None = None
        self.due_ms = world.now_ms

    def tick(self, now_ms: int) -> None:
        """Let the source show what it has, and the run take its turns; one step at a time."""
        self.source.tick(self.run)
        if self.steps is None and now_ms >= self.due_ms:
            self.steps = self.run.turn(now_ms)
        while self.steps is not None and now_ms >= self.due_ms:
            try:
                self.due_ms = now_ms + round(1000 * next(self.steps))
            except StopIteration as end:
                self.steps = None
                self.due_ms = min(end.value, now_ms + 500)
                self.source.attend(self.run)
                return


class WorldNode:
    """One node: registry, findings, and its sources."""

    def __init__(self, world: "DiscoveryWorld", name: str) -> None:
        self.name = name
        self.workers = WorkerRegistry(world.namespaces[name], name)
        outlook = SimpleNamespace(
            sights=lambda worker_id: [SimpleNamespace(up=worker_id in world.up(self.workers))]
        )
        registry = cast(ClusterRegistry, SimpleNamespace(outlook=outlook))
        self.findings = DiscoveredWorkers(
            self.workers, registry, me=name, is_held=lambda: True, now_ms=lambda: world.now_ms
        )
        self.sources = [WorldSource(world, self, source) for source in world.sources]
        self.source, self.run = self.sources[0].source, self.sources[0].run

    def tick(self, now_ms: int) -> None:
        """Let all its sources take their turns."""
        for source in self.sources:
            source.tick(now_ms)


class DiscoveryWorld:
    """Nodes, what they see of each other, and a clock of their own."""

    def __init__(
        self,
        *names: str,
        seed: int = 0,
        confirm_ms: int = 30_000,
        sources: Sequence[str] = (NAME,),
    ) -> None:
        self.sources = sources
        self.rng = Random(seed)
        self.now_ms = START_MS
        self.confirm_ms = confirm_ms
        self.truth = Truth()
        self.namespaces = FakeNamespaces(*names)
        self.told: dict[str, dict[tuple[str, str], Told]] = {name: {} for name in names}
        self.absent_ms: dict[str, int] = {}
        """When a pod was last not there, for however short a time."""
        self.dead: set[str] = set()
        self.paused: set[str] = set()
        self.sides: list[set[str]] = [set(names)]
        self.answering = True
        """Whether engines of pods that there are answer the probers."""
        self.names = names
        self.nodes = {name: WorldNode(self, name) for name in names}

    def __getitem__(self, name: str) -> WorldNode:
        return self.nodes[name]

    def reached_by(self, name: str) -> set[str]:
        """The nodes that hear what a node says, itself among them."""
        return next(side for side in self.sides if name in side)

    def living(self, name: str) -> set[str]:
        """The nodes that a node takes for alive."""
        return {one for one in self.reached_by(name) if one not in self.dead | self.paused}

    def up(self, workers: WorkerRegistry) -> set[str]:
        """The workers whose engines answer."""
        there = {f"{host}:1" for host in self.truth.pods} if self.answering else set()
        return {record.id for record in workers.records() if record.spec.url in there}

    def pause(self, name: str) -> None:
        """Stop a node until the world is healed; nobody hears it meanwhile, nor does it hear anybody."""
        self.paused.add(name)
        self.cut({name}, set(self.names) - {name})

    def cut(self, *sides: set[str]) -> None:
        """Part the nodes."""
        self.sides = list(sides)
        self.namespaces.cut(*(tuple(sorted(side)) for side in sides))

    def heal(self) -> None:
        """Let all nodes hear each other again."""
        self.paused.clear()
        self.sides = [set(self.names)]
        self.namespaces.heal()

    def change(self, host: str, pod: tuple[SightingState, str] | None) -> None:
        """Change what there is."""
        before = self.truth.pods.get(host)
        if pod is None or before is None or before[1] != pod[1]:
            self.absent_ms[host] = self.now_ms
        if pod is None:
            self.truth.pods.pop(host, None)
        else:
            self.truth.pods[host] = pod
        self.happened()

    def select(self, source: str, *hosts: str) -> None:
        """Let a source select these hosts from now on."""
        self.truth.selected[source] = set(hosts)
        self.happened()

    def happened(self) -> None:
        """Let all watches that run hear of a change."""
        for name in self.names:
            for one in self.nodes[name].sources if name not in self.dead else ():
                one.source.happened()

    def pass_time(self, span_ms: int, step_ms: int = 50) -> None:
        """Let all nodes run for so long."""
        for _ in range(0, span_ms, step_ms):
            self.now_ms += step_ms
            self.namespaces.wall_ms += step_ms
            for name in self.names:
                if name not in self.dead and name not in self.paused:
                    self.nodes[name].tick(self.now_ms)

    def registered(self, name: str) -> dict[str, tuple[str, str]]:
        """Return by host what a node knows that is registered: state and instance."""
        return {
            record.spec.url.removesuffix(":1"): (record.state, record.instance)
            for record in self.nodes[name].workers.records()
        }

    def wanted(self) -> dict[str, tuple[str, str]]:
        """Return what should be registered, by host."""
        return {host: (state.value, uid) for host, (state, uid) in self.truth.pods.items()}
