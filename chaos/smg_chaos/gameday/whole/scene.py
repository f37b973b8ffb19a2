"""Scene of a whole day: nodes, engines and a store on hosts of their own, and balanced clients."""

from collections.abc import AsyncIterator, Container, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from random import Random
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError, all_alive
from smg_chaos.gameday.agents.engine_pool import Operator, nodes_of, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.history.database_server import PLACE as STORE
from smg_chaos.gameday.history.database_server import Kind, StoreServer, prepared
from smg_chaos.gameday.history.response_request import CONVERSATIONS
from smg_chaos.gameday.lab.lab import LabError
from smg_chaos.gameday.lab.link_rules import LinkRule
from smg_chaos.gameday.limits.scene import CLIENTS, ENGINES
from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.gameday.whole.clients.chat_users import People
from smg_chaos.gameday.whole.clients.limited_model import Capped
from smg_chaos.gameday.whole.clients.operators import Operators
from smg_chaos.gameday.whole.clients.stream_traffic import Traffic
from smg_chaos.gameday.whole.clock_skew import Skew, compiled
from smg_chaos.gameday.whole.excuses import Excuses
from smg_chaos.gameday.whole.surprises import Surprises
from smg_node.core.ports import Clock

PLACES: Final = (ENGINES, CLIENTS, STORE)
"""Places beside those of the nodes."""
DISK_BYTES: Final = 64 << 20
"""What a node has for its data folder."""
STREAMS_PER_S: Final = 4
_PEOPLE: Final = 6
_STORES: Final[Mapping[str, Kind]] = {"postgresql": "postgresql", "redis": "redis"}
_ENGINE: Final = (
    *("--script", "following", "--itl-ms", "20", "--ttft-ms", "10"),
    *("--slots", "256", "--blocks", "4096"),
)
_CONTRACTS: Final = ("vllm", "sglang")
_FLAGS: Final = (
    *("--http.expose-routing-headers", "true", "--readiness.min-workers", "0"),
    *("--drain.settle-s", "3", "--workers.retry-s", "0.3"),
    # An engine that stands still is given up soon; one that was killed says so itself.
    *("--engine.stall-s", "2", "--engine.first-event-s", "2"),
    *("--routing.wait-for-worker-s", "10"),
)
_READY_S: Final = 60.0


def added_up(parts: Iterable[Mapping[str, LinkRule]]) -> dict[str, LinkRule]:
    """Return one rule for each link that any part has one for.

    The first part's, unless a later one cuts it.
    """
    whole: dict[str, LinkRule] = {}
    for part in parts:
        for link, rule in part.items():
            if link not in whole or rule.block:
                whole[link] = rule
    return whole


class Scene:
    """The processes and clients of a day.

    `rules` of the network are kept by owner, and added up.
    """

    def __init__(self, stage: Stage, clock: Clock) -> None:
        self.stage = stage
        self.cluster = stage.cluster
        self.nodes: list[SmgAgent] = nodes_of(stage.cluster)
        self.engines = {
            f"engine {number}": EngineProcess(
                stage.cluster,
                number,
                ("--contract", _CONTRACTS[number % len(_CONTRACTS)], *_ENGINE),
                place=ENGINES,
            )
            for number in range(stage.engines)
        }
        spare = stage.engines
        self.spare = EngineProcess(stage.cluster, spare, _ENGINE, place=ENGINES)
        self.store: StoreServer | None = None
        self.excuses = Excuses()
        logs = {node.name: node.log for node in self.nodes}
        self.surprises = Surprises(logs, now_s=self.now_s, now_ms=clock.now_ms)
        self.balancer = Balancer(stage.cluster.lab, CLIENTS, self.nodes)
        streams = stage.streams or STREAMS_PER_S
        self.traffic = Traffic(
            *(self.balancer, self.excuses, streams), now_s=self.now_s, surprises=self.surprises
        )
        lab = stage.cluster.lab
        self.people = People(
            *(lab, self.balancer, self.excuses, _PEOPLE), now_s=self.now_s, surprises=self.surprises
        )
        self.capped = Capped(stage.cluster, ENGINES, self.balancer, now_us=self._wall_us)
        rng = Random(stage.rng.getrandbits(64))
        self.operators = Operators(
            *(self.balancer, self.excuses, self.spare.url, rng),
            now_s=self.now_s,
            surprises=self.surprises,
        )
        self.skews: dict[str, Skew] = {}
        """The clock and the disk of each node."""
        self.workers: list[str] = []
        self._rules: dict[str, Mapping[str, LinkRule]] = {}
        self._clock = clock

    def now_s(self) -> float:
        """Return the cluster's time, which never jumps."""
        return self._clock.monotonic_s()

    def _wall_us(self) -> int:
        return self._clock.now_ms() * 1000

    @property
    def has_store(self) -> bool:
        """Whether history is kept in a server that all nodes share."""
        return self.stage.store in _STORES

    @asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        """Have all processes running, and all nodes told of all engines, while inside."""
        with ExitStack() as stack:
            flags: tuple[str, ...] = ("--store", "memory:")
            if self.has_store:
                kind = _STORES[self.stage.store]
                log = self.nodes[0].folder.parent / f"{kind}.log"
                self.store = stack.enter_context(prepared(self.cluster, kind, log))
                await self.store.start()
                flags = ("--store", self.store.url, "--storage.auto-migrate", "on")
            try:
                await self._begin(flags)
                yield
            finally:
                if self.store is not None:
                    self.store.go_on()
                    await self.store.kill()

    async def _begin(self, flags: tuple[str, ...]) -> None:
        every = [*self.engines.values(), self.spare, self.capped.engine]
        for engine in every:
            engine.start()
        library = compiled(self.nodes[0].folder.parent)
        for node in self.nodes:
            node.flags = (*node.flags, *_FLAGS, *flags)
            folder = node.folder / "data"
            folder.mkdir(exist_ok=True)
            self._disk(node)
            skew = Skew(library, node.folder / "skew", folder)
            self.skews[node.name] = skew
            node.environment = {**node.environment, **skew.environment}
        await self.cluster.form()
        for engine in every:
            await engine.listening()
        named = [*self.engines.values(), self.capped.engine]
        self.workers = [await Operator(self.nodes[0]).add(one.url) for one in named]
        if await until(self.cluster, self.is_usable, _READY_S) is None:
            raise ClusterError("not every node can use every engine")
        await self.capped.define(self.nodes)

    def _disk(self, node: SmgAgent) -> None:
        """Give a node's data folder a disk of its own, which can be filled up without hurting anybody else."""
        try:
            self.cluster.lab.disk(node.folder / "data", DISK_BYTES)
        except LabError as error:
            raise ClusterError(f"{error}: play without the fault full-disk") from error

    def set_rules(self, owner: str, rules: Mapping[str, LinkRule]) -> None:
        """Change one owner's part of the network rules.

        Where two parts have a rule for a link, a cut counts.
        """
        self._rules[owner] = rules
        self.cluster.lab.set_rules(added_up(self._rules.values()))

    async def is_whole(self) -> bool:
        """Return whether all nodes see all others alive, and are ready."""
        views = await self.cluster.views(self.nodes)
        if not all_alive(views, self.cluster.names):
            return False
        return all([await Operator(node).ready() for node in self.nodes])

    async def keeps(self, names: Container[str]) -> bool:
        """Return whether every node of these names keeps something in the store."""
        for node in self.nodes:
            if node.name not in names:
                continue
            try:
                status, _ = await node.ask("POST", CONVERSATIONS, b"{}", timeout_s=5.0)
            except ConnectionError:
                return False
            if status != 200:
                return False
        return True

    async def is_usable(self) -> bool:
        """Return whether every node sees every engine of the cast ready."""
        for node in self.nodes:
            try:
                seen = await Operator(node).workers()
            except ConnectionError:
                return False
            if any(seen.get(worker) != "ready" for worker in self.workers):
                return False
        return True

    async def missing_workers(self) -> int:
        """Return how many engines of the cast some node has lost from its list."""
        missing = 0
        for node in self.nodes:
            seen = await Operator(node).workers()
            missing += sum(worker not in seen for worker in self.workers)
        return missing
