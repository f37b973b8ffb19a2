"""History scenario: chats on three nodes whose store is killed and returns; a node with a spool is
killed too.

For each kind of store: all clients chat, the store is killed (SIGKILL, all its processes) and stays
away for so long. Meanwhile a node that spools turns for it is killed, and starts again before the
store does. Then the store comes back on the files it had. What was acknowledged by then has to be
there, once, as it was told; and soon nothing waits in a spool any more.
"""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import Operator, nodes_of, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.smg_agent import METRICS_PORT, SmgAgent
from smg_chaos.gameday.clients.load import Balancer
from smg_chaos.gameday.history.chat_clients import Callers
from smg_chaos.gameday.history.database_server import Kind, StoreServer, prepared
from smg_chaos.gameday.history.final_check import checked, figures
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.gameday.stage import Play, Stage
from smg_chaos.statistics import Figure

PEOPLE: Final = 10
_ENGINE: Final = (
    *("--contract", "vllm", "--script", "fixed", "--itl-ms", "1", "--ttft-ms", "1"),
    *("--slots", "1024"),
)
_BEFORE_S: Final = 2.0
_AFTER_S: Final = 2.0
_NODE_DIES: Final = 0.3
_NODE_LIVES: Final = 0.5
"""Parts of the time without a store."""
_EMPTY_MAX_S: Final = 10.0
_WAIT_S: Final = 60.0
_SPOOL: Final = b"smg_node_store_spool_turns"
_DEAD: Final = b"smg_node_store_dead_turns"


def history_on(*kinds: Kind) -> Play:
    """Return the scenario with these kinds of stores, one after the other."""

    async def play(stage: Stage) -> Sequence[Figure]:
        engine = EngineProcess(stage.cluster, 0, _ENGINE)
        engine.start()
        await engine.listening()
        own = {node.name: node.flags for node in nodes_of(stage.cluster)}
        found: list[Figure] = []
        for kind in kinds:
            log = stage.cluster.agents[0].folder.parent / f"{kind}.log"
            with prepared(stage.cluster, kind, log) as store:
                await store.start()
                for node in nodes_of(stage.cluster):
                    flags = ("--store", store.url, "--storage.auto-migrate", "on")
                    node.flags = (*own[node.name], "--worker", engine.url, *flags)
                try:
                    found += await Scene(stage, store).play()
                finally:
                    await store.kill()
        return found

    return play


class Scene:
    """Nodes over one store, and all clients that chat with them."""

    def __init__(self, stage: Stage, store: StoreServer) -> None:
        self._stage = stage
        self._store = store
        self._cluster = stage.cluster
        self._nodes = nodes_of(stage.cluster)
        self._dying: set[str] = set()
        self._balancer = Balancer(self._nodes)
        self._callers = Callers(
            self._cluster.lab,
            self._balancer,
            stage.streams or PEOPLE,
            now_s=self._now_s,
            dying=self._dying,
        )

    async def play(self) -> list[Figure]:
        """Play it from the nodes' start to their end; return the figures."""
        await self._cluster.form()
        for node in self._nodes:
            await self._ready(node)
        rooms = await self._callers.begin()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._callers.run(rooms))
            try:
                empty_s = await self._weather()
            finally:
                self._callers.stop()
        ledger = self._callers.ledger
        for line in filter(None, ledger.failed):
            self._stage.say(f"failed: {line}")
        dead = sum([await self._metric(node, _DEAD) for node in self._nodes])
        found = await checked(self._cluster.lab, self._nodes, ledger)
        await self._end()
        who = self._store.kind
        return [
            *figures(who, ledger, found),
            Figure(f"{who}: turns that the store did not take", dead, "", 0),
            Figure(f"{who}: spools empty after its return", empty_s, "s", _EMPTY_MAX_S),
        ]

    async def _weather(self) -> float | None:
        """Hurt the store and a node under the chats; return how long spools were not empty after
        the store's return.
        """
        stage, away_s = self._stage, self._stage.seconds
        await asyncio.sleep(_BEFORE_S)
        victim = stage.rng.choice(self._nodes)
        stage.say(f"{self._store.kind} is killed, for {away_s:.0f} s")
        await self._store.kill()
        await asyncio.sleep(_NODE_DIES * away_s)
        await self._spooled(victim)
        self._dying.add(victim.name)
        victim.signal(signal.SIGKILL)
        stage.say(f"{victim.name} is killed, with turns in its spool")
        assert victim.program is not None
        await victim.end_of(victim.program)
        await self._balancer.take_out(victim)
        await asyncio.sleep((_NODE_LIVES - _NODE_DIES) * away_s)
        others = [node.mesh_address for node in self._nodes if node is not victim]
        await self._cluster.start_apart([victim], others)
        await self._ready(victim)
        self._dying.discard(victim.name)
        self._balancer.take_back(victim)
        await asyncio.sleep((1 - _NODE_LIVES) * away_s)
        await self._store.start()
        stage.say(f"{self._store.kind} is back")
        empty_s = await until(self._cluster, self._empty, _WAIT_S)
        await asyncio.sleep(_AFTER_S)
        return empty_s

    async def _spooled(self, node: SmgAgent) -> None:
        """Return when a node has spooled turns; ClusterError if it never does."""

        async def so() -> bool:
            return await self._metric(node, _SPOOL) > 0

        if await until(self._cluster, so, _WAIT_S) is None:
            raise ClusterError(f"{node.name} spools nothing:\n{node.last_words()}")

    async def _empty(self) -> bool:
        return sum([await self._metric(node, _SPOOL) for node in self._nodes]) == 0

    async def _ready(self, node: SmgAgent) -> None:
        if await until(self._cluster, Operator(node).ready, _WAIT_S) is None:
            raise ClusterError(f"{node.name} does not become ready:\n{node.last_words()}")

    async def _metric(self, node: SmgAgent, name: bytes) -> int:
        lab = self._cluster.lab
        talk = Talk(lambda: lab.socket(node.name), "127.0.0.1", METRICS_PORT)
        try:
            _, text = await talk.ask("GET", "/metrics", timeout_s=10.0)
        finally:
            talk.close()
        lines = [line for line in text.splitlines() if line.split(b"{")[0].split(b" ")[0] == name]
        if not lines:
            raise AgentError(f"{node.name} has no metric {name.decode()}")
        return round(sum(float(line.rpartition(b" ")[2]) for line in lines))

    async def _end(self) -> None:
        """Stop all nodes in order: the next ones have another store."""
        for node in self._nodes:
            node.signal(signal.SIGTERM)
        for node in self._nodes:
            assert node.program is not None
            if await node.end_of(node.program) is None:
                node.signal(signal.SIGKILL)
                with suppress(ClusterError):
                    await node.end_of(node.program)

    def _now_s(self) -> float:
        return self._cluster.monotonic_us() / 1e6
