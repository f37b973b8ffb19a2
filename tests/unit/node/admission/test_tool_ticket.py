"""Runs of tools: charged before they are sent, given back only if they were not."""

import asyncio
from typing import Literal

import pytest

from smg_node.admission.admission import Admission, AdmissionOptions
from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.tool_ticket import ToolTicket
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import FakeMatch, FakeShare, LimitWorld, door_of, limit, whole

CALLER = RequestContext("r", 0.0, 600.0, tenant="acme", key_id="k1")
SCOPE = "tool=search/web"
DAY_MS = 86_400_000


class Tools:
    """A door where runs of `search/web` meet some limits, and requests none."""

    def __init__(self, **left: int) -> None:
        self.world = LimitWorld()
        self.shares: dict[str, FakeShare] = {}
        self.door: Admission = door_of(self.world)
        for unit, amount in left.items():
            window_ms = 0 if unit == "concurrent" else DAY_MS
            match: FakeMatch = limit(unit, scope=SCOPE, window_ms=window_ms)  # type: ignore[arg-type]  # a unit
            self.shares[unit] = self.world.add(match, amount)
            self.world.rules.tools.setdefault("search/web", []).append(match)
        self.world.rules.matches.clear()

    def ticket(self, price: str = "0.5") -> ToolTicket:
        ticket = self.door.tool_ticket(CALLER, "m", "search", "web", price=price)
        assert ticket is not None
        return ticket

    def now(self) -> dict[str, tuple[int, int]]:
        return {unit: whole(share) for unit, share in self.shares.items()}


FULL = {"requests": 5, "concurrent": 2, "cost": 3_000_000}
AFTER = {"requests": (4, 1), "concurrent": (2, 0), "cost": (2_500_000, 500_000)}
NOTHING = {"requests": (5, 0), "concurrent": (2, 0), "cost": (3_000_000, 0)}


async def test_a_run_is_charged_when_it_enters_and_holds_its_place_until_it_is_settled() -> None:
    tools = Tools(**FULL)
    ticket = tools.ticket()
    assert await ticket.enter() is None
    assert tools.now() == {**AFTER, "concurrent": (1, 1)}
    ticket.sent()
    ticket.settle()
    assert tools.now() == AFTER
    ticket.settle()
    ticket.void()
    assert tools.now() == AFTER
    assert tools.door.tallies.open == 0


@pytest.mark.parametrize(("sent", "left"), [(False, NOTHING), (True, AFTER)])
async def test_what_was_not_sent_goes_back_and_what_was_stays_spent(
    sent: bool, left: dict[str, tuple[int, int]]
) -> None:
    tools = Tools(**FULL)
    ticket = tools.ticket()
    assert await ticket.enter() is None
    if sent:
        ticket.sent()
    ticket.void()
    ticket.settle()
    assert tools.now() == left
    assert tools.door.tallies.open == 0


async def test_a_run_that_cost_otherwise_is_settled_with_that() -> None:
    for price, left in (("0.1", (2_900_000, 100_000)), ("0", (3_000_000, 0)), ("", (3_000_000, 0))):
        tools = Tools(cost=3_000_000)
        ticket = tools.ticket()
        assert await ticket.enter() is None
        ticket.sent()
        ticket.settle(price)
        assert tools.now() == {"cost": left}
    tools = Tools(cost=700_000)
    ticket = tools.ticket()
    assert await ticket.enter() is None
    ticket.settle("1")
    assert (tools.shares["cost"].left, tools.shares["cost"].debt) == (0, 300_000)


@pytest.mark.parametrize("unit", ["requests", "concurrent", "cost"])
async def test_a_limit_that_has_too_little_refuses_and_nothing_is_charged(
    unit: Literal["requests", "concurrent", "cost"],
) -> None:
    tools = Tools(**{**FULL, unit: 0})
    tools.shares[unit].amount = 1_000_000
    before = tools.now()
    ticket = tools.ticket()
    error = await ticket.enter()
    assert isinstance(error, LimitedError)
    assert error.retry_after_s is not None
    assert error.retry_after_s > 0
    assert error.refused.name.startswith(f"{SCOPE}#{unit}")
    assert SCOPE in error.message
    assert tools.now() == before
    assert tools.door.tallies.open == 0
    ticket.void()
    assert tools.now() == before
    assert tools.door.tallies.requests()[error.refused.name, "refused"] == 1


async def test_what_refused_is_said_of_runs() -> None:
    said = {}
    for unit, amount in (("requests", 100), ("concurrent", 4), ("cost", 7)):
        tools = Tools(**{unit: 0})
        tools.shares[unit].amount = amount
        error = await tools.ticket("0.000001").enter()
        assert isinstance(error, SmgError)
        said[unit] = error.message.partition(";")[0]
    assert said == {
        "requests": "the limit of tool=search/web is used up: 100 runs per day",
        "concurrent": "as many runs are open as the limit of tool=search/web allows: 4 runs at a time",
        "cost": "the limit of tool=search/web is used up: 7 units of cost per day",
    }
    for unit, none in (("requests", "0 runs per day"), ("concurrent", "0 runs at a time")):
        tools = Tools(**{unit: 0})
        error = await tools.ticket().enter()
        assert isinstance(error, LimitedError)
        assert error.message == f"no run is let in: the limit of tool=search/web is {none}"
        assert error.hopeless
    tools = Tools(cost=1)
    error = await tools.ticket("0.000002").enter()
    assert isinstance(error, LimitedError)
    assert error.message == (
        "the run needs 2 units of cost; the limit of tool=search/web is 1 unit of cost per day"
    )


async def test_what_is_not_limited_has_no_ticket_and_is_not_remembered() -> None:
    tools = Tools(requests=1)
    for number in range(10):
        assert tools.door.tool_ticket(CALLER, "m", "search", f"t{number}") is None
        assert tools.door.tool_ticket(CALLER, "m", "", "web") is None
    assert tools.door.ticket(CALLER, "m") is None
    assert len(tools.door._matcher) == 1


async def test_servers_of_clients_are_limited_together() -> None:
    tools = Tools(requests=1)
    tools.world.rules.tools["@client/any"] = tools.world.rules.tools["search/web"]
    first = tools.door.tool_ticket(CALLER, "m", "", "one")
    second = tools.door.tool_ticket(CALLER, "m", "", "two")
    assert first is not None
    assert second is not None
    assert await first.enter() is None
    assert isinstance(await second.enter(), LimitedError)


@pytest.mark.parametrize(("unpriced", "refused"), [("refuse", True), ("allow", False)])
async def test_a_tool_without_a_price_is_refused_where_cost_is_limited(
    unpriced: Literal["refuse", "allow"], refused: bool
) -> None:
    tools = Tools(**FULL)
    tools.door.retune(AdmissionOptions(unpriced=unpriced))
    ticket = tools.ticket(price="")
    error = await ticket.enter()
    assert (error is not None) == refused
    if error is not None:
        assert (error.kind, error.code) == (ErrorKind.FORBIDDEN, "unpriced_tool")
        assert "'search/web'" in error.message
        assert tools.now() == NOTHING
    ticket.void()
    assert tools.now() == NOTHING
    assert tools.door.tallies.open == 0


async def test_a_tool_without_a_price_runs_where_cost_is_not_limited_and_one_for_nothing_always() -> (
    None
):
    tools = Tools(requests=5)
    assert await tools.ticket(price="").enter() is None
    tools = Tools(cost=0)
    assert await tools.ticket(price="0").enter() is None


def test_what_is_no_price_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="decimal"):
        Tools(requests=1).ticket(price="cheap")


async def test_who_leaves_while_a_run_waits_has_charged_nothing() -> None:
    tools = Tools(**{**FULL, "cost": 0})
    tools.shares["cost"].amount = 3_000_000
    tools.shares["cost"].pool = 3_000_000
    waits = asyncio.Event()

    async def refill(share: FakeShare, cost: int, within_s: float) -> bool:
        waits.set()
        await asyncio.sleep(60)
        return False

    tools.world.rights.refill = refill
    async with asyncio.TaskGroup() as tasks:
        entering = tasks.create_task(tools.ticket().enter())
        await waits.wait()
        entering.cancel()
    assert entering.cancelled()
    assert tools.now() == {**NOTHING, "cost": (0, 0)}
    assert tools.door.tallies.open == 0


async def test_runs_wait_for_rights_that_are_on_their_way() -> None:
    tools = Tools(requests=0)
    share = tools.shares["requests"]
    share.amount = share.pool = 10

    async def refill(one: FakeShare, cost: int, within_s: float) -> bool:
        one.left += 1
        return True

    tools.world.rights.refill = refill
    assert await tools.ticket().enter() is None
    assert whole(share) == (0, 1)
