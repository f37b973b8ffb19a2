"""Limits on cost: reserved by the dearest that may be asked, settled with what was billed, exact to the millionth."""

from typing import Any, Literal

import pytest

from smg_node.admission.ticket import Ticket
from smg_node.core.prices.price import Rates
from smg_node.core.prices.price_list import PriceList
from smg_node.core.prices.price_parser import parse_price
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, limit, whole

MILLION = 1_000_000


def limited(
    left: int, price: Any, *, reserve: Literal["worst_case", "estimate"] = "worst_case"
) -> tuple[Ticket, FakeShare]:
    world = LimitWorld()
    share = world.add(limit("cost", reserve=reserve), left)
    door = door_of(world)
    door.reprice(PriceList({"m": parse_price(price)} if price else {}))
    ticket = door.ticket(RequestContext("r", 0.0, 600.0), "m")
    assert ticket is not None
    return ticket, share


async def entered(ticket: Ticket, prompt: int, most: int) -> None:
    await ticket.enter()
    await ticket.reserve(prompt, most)


async def test_what_was_billed_is_charged_in_the_end_and_the_rest_goes_back() -> None:
    ticket, share = limited(1_000, None)
    ticket.rates = Rates(2 * MILLION, 2 * MILLION, 2 * MILLION, 2 * MILLION, 3 * MILLION, 500)
    await entered(ticket, 100, 50)
    # 200 for the prompt, 150 for the answer, and a call that is rounded up.
    assert whole(share) == (649, 351)
    ticket.settle(100, 0, 20, cost_micro=77)
    assert whole(share) == (923, 77)


async def test_more_than_was_reserved_is_a_debt() -> None:
    ticket, share = limited(100, None)
    ticket.rates = Rates(prompt=MILLION)
    await entered(ticket, 60, 0)
    ticket.settle(60, 0, 0, cost_micro=130)
    assert (share.left, share.debt) == (0, 30)


@pytest.mark.parametrize(
    ("tokens", "reserved", "charged"),
    [((100, 0, 10), 1_400, 140), ((300, 200, 10), 8_800, 1_880)],
)
async def test_a_price_with_steps_is_reserved_by_what_may_come_and_settled_by_what_came(
    tokens: tuple[int, int, int], reserved: int, charged: int
) -> None:
    steps = [{"above": 200, "prompt": 16, "cached": 1, "answer": 8}]
    said = {"prompt": 1, "cached": 0.5, "answer": 4, "steps": steps}
    ticket, share = limited(100_000, said)
    prompt, cached, answer = tokens
    await entered(ticket, prompt, 325 if prompt < 200 else 500)
    assert share.spent == reserved
    ticket.settle(prompt, cached, answer)
    assert share.spent == charged


async def test_another_call_needs_as_much_again_where_the_worst_case_is_reserved() -> None:
    ticket, share = limited(100, None)
    ticket.rates = Rates(prompt=MILLION)
    await entered(ticket, 40, 0)
    assert ticket.extend(30)
    assert share.left == 30
    assert not ticket.extend(31)
    assert (share.left, share.wants_more) == (30, True)
    ticket.settle(40, 0, 0, cost_micro=65)
    assert (share.left, share.spent) == (35, 65)


async def test_estimates_may_be_exceeded_by_another_call() -> None:
    ticket, share = limited(50, None, reserve="estimate")
    ticket.rates = Rates(prompt=MILLION)
    await entered(ticket, 40, 0)
    assert ticket.extend(1_000)
    assert share.left == 10


async def test_of_unknown_use_only_the_cost_may_be_known() -> None:
    ticket, share = limited(100, None)
    ticket.rates = Rates(prompt=MILLION)
    await entered(ticket, 40, 0)
    ticket.settle_reserved(7)
    assert share.spent == 7
