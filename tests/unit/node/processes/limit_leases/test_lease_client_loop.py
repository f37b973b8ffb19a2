"""Both halves with a real loop between them: what a data process's requests find at its door."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.tool_ticket import ToolTicket
from smg_node.core.request_context import RequestContext
from smg_node.processes.limit_leases.lease_client_loop import LeasedRights
from smg_node.processes.limit_leases.lease_server_loop import LendingRights
from smg_node.system_clock import SystemClock
from support.http.raw_http import until
from support.rights.fake_rights import FakeMatch, FakeRights, FakeRules, FakeShare, limit

CONTEXT = RequestContext("r", 0.0, 600.0, tenant="acme")
HOUR_MS = 3_600_000


class Definitions:
    """What a data process knows of limits, as far as rights go by it."""

    def __init__(self) -> None:
        self.shares: dict[str, FakeShare] = {}

    def get(self, key: str) -> FakeShare | None:
        return self.shares.get(key)


class Node:
    """A control process and its data processes, in one loop."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.rules = FakeRules()
        self.rights = FakeRights()
        self.definitions = Definitions()
        self.data: dict[str, LeasedRights] = {}
        self.doors: dict[str, Admission] = {}
        self.lending = self._lending()

    def _lending(self) -> LendingRights:
        return LendingRights(self.rights, self._tell, clock=self.clock)

    def define(self, match: FakeMatch, left: int, *, pool: int = 0) -> FakeShare:
        window = self.clock.now_ms() // match.window_ms if match.window_ms else 0
        share = FakeShare(
            match.key,
            left,
            amount=left + max(0, pool),
            window_ms=match.window_ms,
            window=window,
            pool=pool,
            ends_ms=(window + 1) * match.window_ms,
        )
        self.rules.matches.append(match)
        self.rights.shares[match.key] = self.definitions.shares[match.key] = share
        return share

    def start(self, name: str) -> Admission:
        rights = self.data[name] = LeasedRights(self.definitions, clock=self.clock)
        door = Admission(self.rules, rights, clock=self.clock, rng=random.Random(1))
        self.doors[name] = door
        self.link(name)
        return door

    def link(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        self.data[name].link(lambda said: self._later(loop, name, said))

    def _later(self, loop: asyncio.AbstractEventLoop, name: str, said: bytes) -> None:
        loop.call_soon(self.lending.hear, name, said)

    def _tell(self, name: str, told: bytes) -> None:
        asyncio.get_running_loop().call_soon(self.data[name].hear, told)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.lending.run())
            try:
                yield
            finally:
                task.cancel()
                for rights in self.data.values():
                    rights.close()


async def enter(door: Admission) -> bool:
    """Let a request in at that door, and settle it; whether it was let in."""
    ticket = door.ticket(CONTEXT, "m")
    assert ticket is not None
    try:
        await ticket.enter()
    except LimitedError:
        return False
    ticket.settle(0, 0, 0)
    return True


async def test_requests_of_all_processes_together_are_let_in_as_often_as_the_limit_says() -> None:
    node = Node()
    share = node.define(limit(window_ms=HOUR_MS), 50)
    doors = [node.start(name) for name in ("a", "b", "c")]
    async with node.running():
        let_in = [await enter(doors[at % 3]) for at in range(70)]
    assert let_in.count(True) == 50
    assert share.left == 0
    assert share.spent == 50


async def test_runs_of_a_tool_are_lent_to_processes_as_requests_are() -> None:
    node = Node()
    day = limit(scope="tool=search/*", window_ms=24 * HOUR_MS)
    places = limit("concurrent", scope="tool=search/*", window_ms=0)
    shares = [node.define(day, 20), node.define(places, 6)]
    node.rules.tools = {"search/web": [day, places], "search/images": [day, places]}
    doors = [node.start(name) for name in ("a", "b", "c")]
    entered: list[ToolTicket] = []
    async with node.running():
        for at in range(30):
            tool = ("web", "images")[at % 2]
            ticket = doors[at % 3].tool_ticket(CONTEXT, "m", "search", tool)
            assert ticket is not None
            if await ticket.enter() is None:
                entered.append(ticket)
            if len(entered) > 3:
                ticket = entered.pop(0)
                ticket.sent()
                ticket.settle()
        for ticket in entered:
            ticket.void()
        await until(lambda: all(door.tallies.open == 0 for door in doors))
        await until(lambda: shares[1].left == 6)
    let_in = sum(door.tallies.charged()[(f"tool=search/*#{day.unit}/day",)] for door in doors)
    assert let_in == 20 - len(entered)
    assert shares[0].spent <= 20


async def test_a_refusal_says_what_it_says_in_one_process() -> None:
    node = Node()
    node.define(limit(window_ms=HOUR_MS), 1)
    door = node.start("a")
    async with node.running():
        assert await enter(door)
        ticket = door.ticket(CONTEXT, "m")
        assert ticket is not None
        with pytest.raises(LimitedError) as refused:
            await ticket.enter()
    assert refused.value.code == "insufficient_quota"
    assert refused.value.headers("openai")["x-ratelimit-remaining-requests"] == "0"


async def test_headers_tell_what_the_node_has_left() -> None:
    node = Node()
    node.define(limit(window_ms=HOUR_MS), 40, pool=60)
    door = node.start("a")
    async with node.running():
        ticket = door.ticket(CONTEXT, "m")
        assert ticket is not None
        await ticket.enter()
        assert ticket.headers("openai")["x-ratelimit-remaining-requests"] == "99"
        ticket.settle(0, 0, 0)


async def test_rights_that_the_cluster_has_are_waited_for() -> None:
    node = Node()
    share = node.define(limit(window_ms=HOUR_MS), 0, pool=10)

    async def refill(short: FakeShare, cost: int, within_s: float) -> bool:
        await asyncio.sleep(0.01)
        short.left += cost
        return True

    node.rights.refill = refill
    door = node.start("a")
    async with node.running():
        assert await enter(door)
        assert share.spent == 1
        assert node.rights.waited == [(share.key, 1, 0.1)]


async def test_what_is_not_used_goes_back_and_who_is_alone_is_not_woken() -> None:
    node = Node()
    share = node.define(limit(window_ms=HOUR_MS), 50)
    door = node.start("a")
    async with node.running():
        for _ in range(20):
            assert await enter(door)
        await until(lambda: share.left == 30)
        assert node.lending.lent(share.key) == 20


async def test_places_are_free_again_when_requests_end_and_when_a_process_dies() -> None:
    node = Node()
    share = node.define(limit("concurrent", window_ms=0), 3)
    a, b = node.start("a"), node.start("b")
    async with node.running():
        held = []
        for door in (a, a, b):
            ticket = door.ticket(CONTEXT, "m")
            assert ticket is not None
            await ticket.enter()
            held.append(ticket)
        assert not await enter(b)
        held[2].settle(0, 0, 0)
        await asyncio.sleep(0.03)
        assert await enter(a), "what another process does not use is called back"
        node.data.pop("a").close()
        node.lending.closed("a", gone=True)
        assert share.left + node.lending.lent(share.key) == 3
        await asyncio.sleep(0.03)
        assert await enter(b)


async def test_requests_wait_while_the_control_process_is_another_one() -> None:
    node = Node()
    places = node.define(limit("concurrent", window_ms=0), 2)
    node.define(limit(window_ms=HOUR_MS), 20)
    door = node.start("a")
    async with node.running():
        ticket = door.ticket(CONTEXT, "m")
        assert ticket is not None
        await ticket.enter()
        node.data["a"].cut()
        node.rights.shares = dict(node.rights.shares)
        again = FakeShare(places.key, 2, amount=2, window_ms=0, window=0)
        node.rights.shares[places.key] = again
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(enter(door))
            await asyncio.sleep(0.05)
            node.lending = node._lending()
            node.lending.expect(["a"])
            node.link("a")
        assert waiting.result()
        ticket.settle(0, 0, 0)
        await until(lambda: again.left == 2)


@pytest.mark.parametrize("garbage", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x91\xa1x", bytes(64)])
async def test_garbage_is_refused_and_changes_nothing(garbage: bytes) -> None:
    node = Node()
    share = node.define(limit(window_ms=HOUR_MS), 5)
    door = node.start("a")
    async with node.running():
        await asyncio.sleep(0)
        with suppress(ValueError):
            node.lending.hear("a", garbage)
            raise AssertionError("it was taken")
        with suppress(ValueError):
            node.data["a"].hear(garbage)
            raise AssertionError("it was taken")
        assert await enter(door)
    assert share.left + node.lending.lent(share.key) == 5
