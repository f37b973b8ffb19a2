"""Several nodes that share workers, without a mesh: real registries and fleets, boards that carry at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from smg_mesh.state.workers.worker_registry import WorkerRegistry
from smg_node.cluster.workers.sticky_sessions import Sessions
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.config.worker_url import parse_worker_url
from smg_node.core.ids import WorkerId
from smg_node.fleet.fleet import Fleet, FleetOptions
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.fleet.workers.worker import Worker
from smg_node.system_clock import SystemClock
from smg_node.wiring.fleet_parts import FleetService
from support.engines.fake_engine import FakeEngine
from support.fleet.binding_table import NodeBindings, World
from support.fleet.fleet_builder import FAST, fleet_of
from support.state.fake_namespace import FakeNamespaces

Heard = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class FakeVerdict:
    node: str
    up: bool
    reason: str
    age_ms: int = 0


class FakeVerdicts:
    """What one node says and hears; `board` belongs to all."""

    def __init__(self, me: str, board: "Board") -> None:
        self._me = me
        self._board = board
        board.verdict_watchers[me] = []

    def publish(self, worker_id: str, *, up: bool, reason: str, ttl_ms: int) -> None:
        assert ttl_ms >= 15_000
        self._set(worker_id, FakeVerdict(self._me, up, reason))

    def forget(self, worker_id: str) -> None:
        self._set(worker_id, None)

    def _set(self, worker_id: str, verdict: FakeVerdict | None) -> None:
        said = self._board.verdicts.setdefault(worker_id, {})
        if said.get(self._me) == verdict:
            return
        if verdict is None:
            del said[self._me]
        else:
            said[self._me] = verdict
        self._board.spoken(worker_id)

    def of(self, worker_id: str) -> Sequence[FakeVerdict]:
        said = self._board.verdicts.get(worker_id, {})
        return [said[node] for node in sorted(said) if node in self._board.living]

    def watch(self, heard: Heard) -> None:
        self._board.verdict_watchers[self._me].append(heard)


class FakeLoads:
    """What all nodes have open."""

    def __init__(self, me: str, board: "Board") -> None:
        self.publications = 0
        self._me = me
        self._board = board

    def publish(self, loads: Mapping[str, tuple[int, int]]) -> None:
        self.publications += 1
        before = self._board.loads.get(self._me, {})
        self._board.loads[self._me] = dict(loads)
        changed = sorted(
            {*before, *loads} - {one for one in loads if before.get(one) == loads[one]}
        )
        if changed:
            for heard in self._board.load_watchers:
                heard(changed)

    def other(self, worker_id: str) -> tuple[int, int]:
        others = [
            loads[worker_id]
            for node, loads in self._board.loads.items()
            if node != self._me and worker_id in loads and node in self._board.living
        ]
        return sum(one[0] for one in others), sum(one[1] for one in others)

    def watch(self, heard: Heard) -> None:
        self._board.load_watchers.append(heard)


class FakeSticky(NodeBindings):
    """The sticky table of one node, with what is known of each row."""

    def row(self, key: str) -> SimpleNamespace | None:
        worker = self.worker_of(key)
        if worker is None:
            return None
        return SimpleNamespace(
            worker=worker,
            why=self.why.get(key, ""),
            node="n",
            time_ms=SystemClock().now_ms() - 50,
            expires_ms=SystemClock().now_ms() + 1000,
        )


@dataclass
class Board:
    """What travels between the nodes of a world."""

    names: Sequence[str]
    verdicts: dict[str, dict[str, FakeVerdict]] = field(default_factory=dict)
    loads: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    verdict_watchers: dict[str, list[Heard]] = field(default_factory=dict)
    load_watchers: list[Heard] = field(default_factory=list)
    member_watchers: list[Heard] = field(default_factory=list)
    sticky: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.living = list(self.names)
        self.workers = FakeNamespaces(*self.names, name="workers")

    def spoken(self, worker_id: str) -> None:
        for watchers in self.verdict_watchers.values():
            for heard in watchers:
                heard([worker_id])

    def die(self, name: str) -> None:
        """Everybody has noticed that a node is dead."""
        self.living.remove(name)
        for worker_id, said in self.verdicts.items():
            if name in said:
                self.spoken(worker_id)
        for heard in self.member_watchers:
            heard(self.living)


class FakeSharedWorkers:
    """One node's part of it all; see `cluster.shared_port.SharedPort`."""

    def __init__(self, name: str, board: Board) -> None:
        self.name = name
        self.workers = WorkerRegistry(board.workers[name], name)
        self.verdicts = FakeVerdicts(name, board)
        self.load = FakeLoads(name, board)
        self.sticky = FakeSticky(board.sticky)
        board.sticky.tables.append(self.sticky)
        self.held = True
        self.keyring = ["one"]
        self.forgotten: list[Callable[[], None]] = []
        self._board = board

    def living(self) -> Sequence[str]:
        return list(self._board.living)

    def watch_members(self, heard: Heard) -> None:
        self._board.member_watchers.append(heard)

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        self.forgotten.append(heard)

    def watch_held(self, heard: Callable[[], None]) -> None:
        self.arrived = heard

    def seal(self, secret: str) -> bytes:
        return f"{self.keyring[0]}\0{secret[::-1]}".encode()

    def open_secret(self, sealed: bytes) -> str | None:
        key, _, secret = sealed.decode().partition("\0")
        return secret[::-1] if key in self.keyring else None


class FleetNode:
    """One node: its shared state, its fleet, its registry, its desk; and engines as it reaches them."""

    def __init__(
        self,
        name: str,
        board: Board,
        engines: Mapping[str, FakeEngine],
        folder: Path,
        options: FleetOptions,
    ) -> None:
        self.name = name
        self.engines = engines
        self.shared = FakeSharedWorkers(name, board)
        self.fleet: Fleet = fleet_of(engines, folder / name, options=options)
        self.registry = ClusterRegistry(
            self.shared, self.fleet, monotonic_s=SystemClock().monotonic_s, patience_s=0.3
        )
        self.desk = FleetService(
            self.fleet,
            Networks(()),
            registry=self.registry,
            sessions=Sessions(self.shared.sticky, SystemClock().now_ms),
            clock=SystemClock(),
            workers_ready_min=0,
            draining=lambda: False,
        )
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, group: asyncio.TaskGroup) -> None:
        self._tasks = [
            group.create_task(self.fleet.run()),
            group.create_task(self.registry.run()),
        ]

    def kill(self) -> None:
        for task in self._tasks:
            task.cancel()

    def list_static(self, *hosts: str) -> None:
        self.registry.list_static([parse_worker_url(f"grpc://{host}:1") for host in hosts])

    def worker(self, host: str) -> Worker:
        return self.fleet.get(f"grpc://{host}:1")

    def ids(self) -> list[WorkerId]:
        return [worker.id for worker in self.fleet.workers()]

    def ready(self, *hosts: str) -> bool:
        """Whether exactly these workers are there, and all of them ready."""
        workers = self.fleet.workers()
        urls = sorted(worker.url.host for worker in workers)
        return urls == sorted(hosts) and all(worker.routable for worker in workers)


@dataclass
class FleetWorld:
    """Nodes by name."""

    board: Board
    nodes: dict[str, FleetNode]

    def __getitem__(self, name: str) -> FleetNode:
        return self.nodes[name]

    def all(self) -> list[FleetNode]:
        return [self.nodes[name] for name in self.board.living]

    def kill(self, name: str) -> None:
        self.nodes[name].kill()
        self.board.die(name)

    async def until(self, condition: Callable[[FleetNode], bool]) -> None:
        """Return when it holds at all living nodes."""
        async with asyncio.timeout(10):
            while not all(condition(node) for node in self.all()):  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)

    def looks(self) -> dict[str, int]:
        return {
            name: sum(engine.looks for engine in node.engines.values())
            for name, node in self.nodes.items()
        }


@asynccontextmanager
async def fleet_world(
    folder: Path, *names: str, hosts: Sequence[str] = ("a", "b"), options: FleetOptions = FAST
) -> AsyncIterator[FleetWorld]:
    """Run nodes that each reach the engines `hosts` on a path of its own (`node.engines[host]`)."""
    board = Board(names)
    nodes = {
        name: FleetNode(name, board, {host: FakeEngine() for host in hosts}, folder, options)
        for name in names
    }
    async with asyncio.TaskGroup() as group:
        for node in nodes.values():
            node.start(group)
        try:
            yield FleetWorld(board, nodes)
        finally:
            for node in nodes.values():
                node.kill()
