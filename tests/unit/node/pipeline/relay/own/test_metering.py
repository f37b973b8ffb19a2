"""A charge that is handed to a call which counts tokens itself, and taken back where that came to nothing."""

from types import SimpleNamespace
from typing import cast

from smg_node.admission.admission import Admission
from smg_node.core.generation.events import Usage as CostUsage
from smg_node.core.prices.price_list import DEFINITIONS, PriceBook
from smg_node.core.prices.price_parser import parse_price
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_context import RelayParts, Spent
from smg_node.pipeline.relay.relay_metering import RelayMeter
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.response_filter import UsageReader
from smg_node.pipeline.relay.routes.target_filter import TargetFilter
from smg_node.system_clock import SystemClock
from support.rights.fake_rights import LimitWorld, door_of, limit, whole

CONTEXT = RequestContext("req", 0.0, 9.0)
NO_TARGETS = cast("TargetFilter", None)
"""Only limits on cost look at them."""
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}


class Side:
    provider, model, dialects = "p", "v", ("chat",)
    price = parse_price({"prompt": 1, "answer": 1})


class Targets:
    """A vendor's model, which its route may go to."""

    def __init__(self, side: VendorSide) -> None:
        engine = HttpEngine.__new__(HttpEngine)
        engine.vendor = side
        self._worker = cast("Worker", SimpleNamespace(engine=engine, own_model=""))

    def vendors_among(self) -> list[Worker]:
        return [self._worker]


def parts(admission: Admission | None, prices: PriceBook | None = None) -> RelayParts:
    """Return what a meter needs of them."""
    book = PriceBook() if prices is None else prices
    found = SimpleNamespace(admission=admission, prices=book, clock=SystemClock(), copies=False)
    return cast("RelayParts", found)


async def test_nothing_is_charged_twice_however_often_it_changes_hands() -> None:
    world = LimitWorld()
    requests, tokens = world.add(limit(), 5), world.add(limit("tokens"), 1_000)
    asked = relayable(APIS["chat"], b"{}", BODY)
    meter = RelayMeter(parts(door_of(world)), asked, CONTEXT)
    await meter.enter("m", NO_TARGETS)
    left, charged = whole(tokens)
    assert charged > 50
    ticket = meter.hand_over()
    assert ticket is not None
    assert whole(tokens) == (1_000, 0)
    # What the call itself reserves, and then gives up.
    await ticket.reserve(7, 20)
    assert whole(tokens) == (973, 27)
    await meter.take_back()
    assert whole(tokens) == (left, charged)
    await meter.take_back()
    assert whole(tokens) == (left, charged)
    used = UsageReader()
    used.prompt_tokens, used.completion_tokens = 9, 4
    meter.settle(used, called=True, failed=False, complete=True)
    assert (whole(requests), whole(tokens)) == ((4, 1), (987, 13))


async def test_what_a_vendor_took_before_it_broke_is_charged_beside_the_engines_that_answered() -> (
    None
):
    world = LimitWorld()
    cost = world.add(limit("cost"), 1_000_000)
    asked = relayable(APIS["chat"], b"{}", BODY)
    meter = RelayMeter(parts(door_of(world)), asked, CONTEXT)
    vendor = cast("VendorSide", Side())
    await meter.enter("m", cast("TargetFilter", Targets(vendor)))
    # A dollar for a million tokens: a millionth each, of the prompt and of the answer.
    meter.vendor_called(vendor, Spent(CostUsage(300, 7, 0), estimated=True))
    ticket = meter.hand_over()
    assert ticket is not None
    await ticket.reserve(290, 40)
    used = UsageReader()
    used.prompt_tokens, used.completion_tokens = 290, 20
    meter.own_called("m", used)
    meter.settle(used, called=True, failed=False, complete=True)
    # Nobody has said what the engines cost.
    assert whole(cost) == (1_000_000 - 307, 307)


async def test_engines_that_answered_cost_their_own_price_and_not_the_vendors() -> None:
    world = LimitWorld()
    cost = world.add(limit("cost"), 1_000_000)
    asked = relayable(APIS["chat"], b"{}", BODY)
    book = PriceBook()
    book.set(DEFINITIONS, {"m": parse_price({"prompt": 0.1, "answer": 0.1})})
    meter = RelayMeter(parts(door_of(world), book), asked, CONTEXT)
    await meter.enter("m", cast("TargetFilter", Targets(cast("VendorSide", Side()))))
    ticket = meter.hand_over()
    assert ticket is not None
    await ticket.reserve(290, 40)
    used = UsageReader()
    used.prompt_tokens, used.completion_tokens = 290, 20
    meter.own_called("m", used)
    meter.settle(used, called=True, failed=False, complete=True)
    assert whole(cost) == (1_000_000 - 31, 31)


async def test_without_limits_there_is_nothing_to_hand_over() -> None:
    asked = relayable(APIS["chat"], b"{}", BODY)
    meter = RelayMeter(parts(None), asked, CONTEXT)
    await meter.enter("m", NO_TARGETS)
    assert meter.hand_over() is None
    await meter.take_back()
    meter.settle(UsageReader(), called=False, failed=True, complete=False)
