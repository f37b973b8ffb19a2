"""Restart of one node as an upgrade does it: drained and stopped, or only stopped, and back in
before the next one.
"""

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.engine_pool import Operator, until
from smg_chaos.gameday.agents.smg_agent import HTTP_PORT, SmgAgent
from smg_chaos.gameday.whole.clients.balancer import Balancer

Means: TypeAlias = Literal["drain", "signal"]

_STOP_S: Final = 240.0
"""Longer than a node takes that was told to stop, with its defaults: 5 s and 180 s."""
_READY_S: Final = 60.0
_IN_S: Final = 30.0
_AGREED_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Restart:
    """Times of one restart, in seconds. `streams` were open at the node at its start. `waited_s` 0:
    there was no drain.
    """

    node: str
    means: Means
    streams: int
    waited_s: float
    stopped_s: float
    ready_s: float


class Restarting:
    """Restarts nodes of a cluster behind a balancer."""

    def __init__(
        self, cluster: Cluster, nodes: Sequence[SmgAgent], balancer: Balancer[SmgAgent]
    ) -> None:
        self._cluster = cluster
        self._nodes = tuple(nodes)
        self._balancer = balancer

    async def restart(self, node: SmgAgent, means: Means, streams: int) -> Restart:
        """Restart one; return when the balancer sends it requests again. ClusterError if it never
        does.
        """
        begun_s = self._now_s()
        waited_s = await self._drained(node) if means == "drain" else 0.0
        told_s = self._now_s() if means == "drain" else begun_s
        await self._stopped(node)
        stopped_s = self._now_s()
        seeds = [other.mesh_address for other in self._nodes if other is not node]
        await self._cluster.start_apart([node], seeds)
        if await until(self._cluster, Operator(node).ready, _READY_S) is None:
            raise ClusterError(f"{node.name} does not become ready:\n{node.last_words()}")
        ready_s = self._now_s()
        if await until(self._cluster, lambda: self._is_in(node), _IN_S) is None:
            raise ClusterError(f"the balancer does not take {node.name} back")
        if await self._cluster.until_whole(_AGREED_S) is None:
            raise ClusterError(f"not whole again: {await self._cluster.describe()}")
        return Restart(node.name, means, streams, waited_s, stopped_s - told_s, ready_s - stopped_s)

    async def _drained(self, node: SmgAgent) -> float:
        """Drain it through another node, and wait until it is empty; return how long that took."""
        at = self._nodes[(self._nodes.index(node) + 1) % len(self._nodes)]
        command: list[str | Path] = [
            Path(sys.executable).with_name("smg-admin"),
            *("--url", f"http://127.0.0.1:{HTTP_PORT}", "--json"),
            *("cluster", "drain", node.name, "--wait"),
        ]
        log = node.folder / "drain.json"
        with log.open("wb") as output:
            code = await self._run(at, command, output)
        said = log.read_text(errors="replace")
        if code != 0:
            raise ClusterError(f"smg-admin does not drain {node.name}: {code} {said[-2000:]}")
        told: dict[str, Any] = json.loads(said)
        if told["outcome"] != "drained" or told["last"]["open"]:
            raise ClusterError(f"{node.name} is not empty: {said[-2000:]}")
        return float(told["waited_s"])

    async def _run(self, at: SmgAgent, command: list[str | Path], output: IO[bytes]) -> int | None:
        program = self._cluster.lab.spawn(at.name, command, output, folder=at.folder)
        return await at.end_of(program, _STOP_S)

    async def _stopped(self, node: SmgAgent) -> None:
        node.signal(signal.SIGTERM)
        assert node.program is not None
        code = await node.end_of(node.program, _STOP_S)
        if code != 0:
            raise ClusterError(f"{node.name} ends with {code}:\n{node.last_words()}")

    async def _is_in(self, node: SmgAgent) -> bool:
        return node.name in self._balancer.up()

    def _now_s(self) -> float:
        return self._cluster.monotonic_us() / 1e6
