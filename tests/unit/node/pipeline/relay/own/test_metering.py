"""A charge that is handed to a call which counts tokens itself, and taken back where that came to nothing."""

from types import SimpleNamespace
from typing import cast

from smg_node.admission.admission import Admission
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.relay.relay_context import RelayParts
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


def parts(admission: Admission | None) -> RelayParts:
    """Return what a meter needs of them."""
    found = SimpleNamespace(
        admission=admission, charged=True, prices=PriceBook(), clock=SystemClock()
    )
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


async def test_without_limits_there_is_nothing_to_hand_over() -> None:
    asked = relayable(APIS["chat"], b"{}", BODY)
    meter = RelayMeter(parts(None), asked, CONTEXT)
    await meter.enter("m", NO_TARGETS)
    assert meter.hand_over() is None
    await meter.take_back()
    meter.settle(UsageReader(), called=False, failed=True, complete=False)
