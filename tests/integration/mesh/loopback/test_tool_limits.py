"""A limit of a tool over five members and a real MCP server that counts: it runs as often as all may together."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_chaos.mcp.http_server import HttpServer
from smg_mesh.escrow.audit.auditor import overspent
from smg_mesh.state.limits.limit_rule import Amount, LimitRule
from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.core.request_context import RequestContext
from smg_node.mcp.failures import Failure
from smg_node.mcp.pool import ServerPool, Target
from smg_node.system_clock import SystemClock
from support.mcp.faulty_server import pooled, served, target
from support.mesh.cut_links import CutLinks
from support.mesh.mesh_cluster import agree, cluster, states, until
from support.mesh.shared_state_members import Node, add_node

DAY_MS = 86_400_000
NOWHERE = "127.0.0.1:1"
"""A seed that never answers: who has one waits for the others it expects."""
TOGETHER = 6
"""Runs that are under way at one node."""


class Members:
    """Five nodes, each with a door, and one server for all of them."""

    def __init__(
        self, nodes: Sequence[Node], links: CutLinks, server: HttpServer, pool: ServerPool
    ) -> None:
        self.nodes = nodes
        self.links = links
        self.server = server
        self._pool = pool
        self._target: Target = target(server)
        clock = SystemClock()
        self.doors = {
            node.mesh.name: Admission(
                node.shared.limits, node.shared.rights, clock=clock, rng=random.Random(number)
            )
            for number, node in enumerate(nodes)
        }
        self.outcomes: dict[str, Counter[str]] = {name: Counter() for name in self.doors}
        self.refused: set[str] = set()
        """Limits that had too little."""
        self.windows: set[int] = set()
        self._now_ms = clock.now_ms

    async def limit(self, rule: LimitRule) -> None:
        self.nodes[0].shared.limits.put(rule, version=None)
        await until(
            lambda: all(node.shared.limits.rule(rule.scope) is not None for node in self.nodes)
        )

    async def run(self, name: str, tenant: str, tool: str = "echo") -> None:
        """Run a tool once at one node, as the loop around a generation does."""
        context = RequestContext("r", 0.0, 600.0, tenant=tenant)
        ticket = self.doors[name].tool_ticket(context, "m", "count", tool, price="0.01")
        self.windows.add(self._now_ms() // DAY_MS)
        if ticket is None:
            self.outcomes[name]["free"] += 1
            return
        try:
            error = await ticket.enter()
            if error is not None:
                assert isinstance(error, LimitedError)
                self.refused.add(error.refused.name)
                self.outcomes[name]["limited"] += 1
                return
            ticket.sent()
            said = await self._pool.call(self._target, "echo", '{"text": "x"}')
            assert not isinstance(said, Failure), said
            self.outcomes[name]["ok"] += 1
            ticket.settle()
        finally:
            ticket.void()

    async def offer(self, each: int, *names: str, tenant: str = "acme", tool: str = "echo") -> None:
        """Ask so often at each of these nodes, some at a time."""
        left = dict.fromkeys(names, each)

        async def caller(name: str) -> None:
            while left[name]:
                left[name] -= 1
                await self.run(name, tenant, tool)

        async with asyncio.TaskGroup() as group:
            for name in names * TOGETHER:
                group.create_task(caller(name))

    def ran(self) -> int:
        """How often the server says that anything ran."""
        return self.server.book.runs["echo"]

    def rows_overspent(self) -> Sequence[object]:
        return overspent([row for node in self.nodes for row in node.shared.rights.rows()])


@asynccontextmanager
async def five(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Members]:
    links = CutLinks(monkeypatch)
    async with served() as server, pooled() as pool, cluster() as meshes:
        nodes: list[Node] = []
        for name in "abcde":
            seed = nodes[0] if nodes else NOWHERE
            nodes.append(await add_node(meshes, name, seed, folder=folder, expect=5))
            links.own(nodes[-1].mesh)
        await until(lambda: agree([node.mesh for node in nodes]))
        await until(lambda: all(node.shared.held for node in nodes))
        yield Members(nodes, links, server, pool)


def a_day(amount: int, standing: float = 0.5, **scope: str) -> LimitRule:
    amounts = (Amount("requests", amount, DAY_MS),)
    return LimitRule(amounts=amounts, mode="strict", standing=standing, **scope)  # type: ignore[arg-type]  # names of a scope


@pytest.mark.parametrize(("standing", "least"), [(0.0, 70), (0.5, 25)])
async def test_a_hundred_runs_a_day_are_a_hundred_for_five_nodes_though_one_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, standing: float, least: int
) -> None:
    async with five(tmp_path, monkeypatch) as members:
        await members.limit(a_day(100, standing, tool="count/*"))
        # All have heard of it, and some of it is spent, before one is cut off.
        await members.offer(2, *"abcde")
        away, *rest = reversed(members.nodes)
        members.links.cut(away.mesh)
        await until(
            lambda: (
                all(states(node.mesh)[away.mesh.name] != "alive" for node in rest)
                and list(states(away.mesh).values()).count("alive") == 1
            )
        )
        await members.offer(200, *"abcde", tool="other")
        assert members.links.lost > 0
        during = members.ran()
        members.links.heal()
        await until(lambda: agree([node.mesh for node in members.nodes]))
        await members.offer(20, *"abcde")
        ok = {name: said["ok"] for name, said in members.outcomes.items()}
        assert sum(ok.values()) == members.ran(), "each run that was let in was made, once"
        assert members.ran() <= 100 * len(members.windows), members.outcomes
        # Of a day that began before the nodes did, what would have stood with them until then is gone.
        assert during >= least, members.outcomes
        assert sum(said["free"] for said in members.outcomes.values()) == 0
        # A day that ends meanwhile lets another hundred in.
        refused = sum(said["limited"] for said in members.outcomes.values())
        assert refused >= 1_110 - 110 * len(members.windows)
        assert members.rows_overspent() == []


async def test_tenants_and_tools_have_their_own_numbers_and_all_of_a_server_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with five(tmp_path, monkeypatch) as members:
        await members.limit(a_day(4, 0.0, tenant="*", tool="count/echo"))
        await members.limit(a_day(3, 0.0, tool="*"))
        await members.limit(a_day(9, 0.0, tool="count/*"))
        await members.limit(a_day(5, 0.0, tool="count/echo"))
        # A limit of requests is none of runs.
        await members.limit(a_day(0, tenant="*"))
        ran = [0]
        for tenant, tool in (("acme", "echo"), ("beta", "echo"), ("beta", "other")):
            await members.offer(3, *"abcde", tenant=tenant, tool=tool)
            ran.append(members.ran() - sum(ran))
        _, acme, beta, other = ran
        assert acme >= 1
        if len(members.windows) == 1:
            assert acme <= 4
            assert acme + beta <= 5
            assert other <= 3
        assert members.ran() <= 9 * len(members.windows)
        assert {name.partition("#")[0] for name in members.refused} <= {
            "tenant=acme,tool=count/echo",
            "tenant=beta,tool=count/echo",
            "tool=count/echo",
            "tool=count/other",
            "tool=count/*",
        }
        assert members.refused
        assert members.rows_overspent() == []
