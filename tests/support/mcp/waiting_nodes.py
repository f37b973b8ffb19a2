"""Nodes on which runs wait for an operator's word: their approvals, and runs that wait in tasks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

from prometheus_client import CollectorRegistry

from smg_node.cluster.approvals.approval_service import ClusterApprovals
from smg_node.cluster.approvals.lazy_approvals import WAITING_MAX, LazyApprovals
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.ids import IdSource
from smg_node.core.request_context import RequestContext
from smg_node.http.ports.node import MemberRow
from smg_node.pipeline.tool_loop.ports import OperatorAnswer
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.meters import Meters
from support.http.fake_cluster import member_row
from support.state.fake_shared_state import SharedWorld

LONG_S = 300.0


class WaitingProcess:
    """One process of a node, whose approvals are real; `draining` may be set."""

    def __init__(self, node: str, seed: int = 1, waiting_max: int = WAITING_MAX) -> None:
        clock = SystemClock()
        self.meters = Meters(CollectorRegistry(), version="0")
        self.draining = False
        self.clock = clock
        self.approvals = LazyApprovals(
            node, IdSource(clock, Random(seed)), clock, self.meters, waiting_max=waiting_max
        )

    def connect(self, world: SharedWorld | None = None, node: str = "", states: str = "") -> None:
        """Connect it with the other nodes of a world."""

        def rows() -> Sequence[MemberRow]:
            names = [] if world is None else list(world.meshes)
            return [
                member_row(name, "dead" if name in states else "alive", me=name == node)
                for name in names
            ]

        mesh = None if world is None else world.meshes[node]
        self.approvals.connect(rows, mesh, lambda: self.draining)

    def counted(self, answer: str) -> float:
        """Return how many runs ended like this."""
        name = "smg_node_mcp_approvals_total"
        return self.meters.registry.get_sample_value(name, {"answer": answer}) or 0.0

    def waiting(self) -> float | None:
        """Return how many wait, as a scrape sees it."""
        return self.meters.registry.get_sample_value("smg_node_mcp_approvals_waiting")

    @asynccontextmanager
    async def run(
        self,
        tool: str = "drop",
        arguments: str = "{}",
        *,
        wait_s: float = LONG_S,
        request_id: str = "r-1",
        tenant: str = "acme",
    ) -> AsyncIterator[asyncio.Task[OperatorAnswer]]:
        """Let a run wait meanwhile; it has begun when this yields."""
        context = RequestContext(request_id, 0.0, 1e12, tenant=tenant, key_id="k-1")
        until_s = self.clock.monotonic_s() + wait_s
        asked = self.approvals.wait(
            ToolOwner("crm", tool), arguments, context, model="m", until_s=until_s
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asked)
            # Long enough for another millisecond: lists are ordered by time.
            await asyncio.sleep(0.003)
            try:
                yield task
            finally:
                task.cancel()


class WaitingNodes:
    """Nodes of a world, each of one process."""

    def __init__(self, *names: str, dead: str = "") -> None:
        self.world = SharedWorld(*names)
        self.nodes = {name: WaitingProcess(name, seed) for seed, name in enumerate(names)}
        for name, node in self.nodes.items():
            node.connect(self.world, name, dead)

    def __getitem__(self, name: str) -> WaitingProcess:
        return self.nodes[name]

    def service(self, name: str) -> ClusterApprovals:
        """Return what an operator of that node asks."""
        return self.nodes[name].approvals.service()
