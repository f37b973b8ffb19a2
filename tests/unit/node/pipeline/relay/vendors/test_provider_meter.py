"""Each call of a provider is charged to the provider's limits before it is sent, and settled by what its vendor said."""

import random
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.core.generation.events import Usage
from smg_node.core.prices.price import Price
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.prices.price_parser import parse_price
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.pipeline.relay.relay_context import Spent
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.response_filter import UsageReader
from smg_node.pipeline.relay.vendors.call_prices import CallPrices
from smg_node.pipeline.relay.vendors.provider_meter import ProviderMeter
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, limit, whole

BODY = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "x" * 400}]}


class Side:
    model = "v"

    def __init__(self, provider: str, price: Price | None = None) -> None:
        self.provider = provider
        self.price = price


def meter_of(
    door: Admission | None, provider: str = "p", price: Price | None = None
) -> ProviderMeter:
    asked = relayable(APIS["chat"], msgspec.json.encode(BODY), dict(BODY))
    prices = partial(CallPrices, PriceBook(), asked, lambda: 0)
    return ProviderMeter(door, prices, asked, cast("VendorSide", Side(provider, price)), "m")


class World:
    """Limits of a provider on requests, on what is open at a time and on tokens."""

    def __init__(self, requests: int = 5, at_a_time: int = 2, tokens: int = 1_000) -> None:
        limits = LimitWorld()
        self.shares = [
            self.add(limits, limit(scope="provider=p"), requests),
            self.add(limits, limit("concurrent", scope="provider=p", window_ms=0), at_a_time),
            self.add(limits, limit("tokens", scope="provider=p"), tokens),
        ]
        self.door = door_of(limits)

    @staticmethod
    def add(limits: LimitWorld, match: Any, left: int) -> FakeShare:
        share = limits.add(match, left)
        limits.rules.providers.setdefault("p", []).append(limits.rules.matches.pop())
        return share

    def meter(self, provider: str = "p") -> ProviderMeter:
        return meter_of(self.door, provider)

    @property
    def left(self) -> list[int]:
        return [share.left for share in self.shares]


def usage(prompt: int = 0, answer: int = 0) -> UsageReader:
    found = UsageReader()
    found.prompt_tokens, found.completion_tokens = prompt, answer
    return found


async def test_a_call_is_charged_before_it_is_sent_and_settled_by_its_usage() -> None:
    world = World()
    meter = world.meter()
    await meter.begin()
    requests, at_a_time, tokens = world.left
    assert (requests, at_a_time) == (4, 1)
    # A prompt of about a hundred tokens, and all of the answer it may have.
    assert 800 <= tokens <= 870
    meter.sent()
    meter.spoke()
    meter.end(usage(90, 7), complete=True)
    assert world.left == [4, 2, 903]


async def test_a_call_that_was_not_sent_costs_nothing() -> None:
    world = World()
    meter = world.meter()
    await meter.begin()
    meter.end(usage(), complete=False)
    assert world.left == [5, 2, 1_000]


async def test_a_call_that_its_vendor_refused_costs_a_request_and_no_tokens() -> None:
    world = World()
    meter = world.meter()
    await meter.begin()
    meter.sent()
    meter.end(usage(), complete=False)
    assert world.left == [4, 2, 1_000]


async def test_an_answer_that_broke_costs_what_was_reserved() -> None:
    world = World()
    meter = world.meter()
    await meter.begin()
    reserved = world.left[2]
    meter.sent()
    meter.spoke()
    meter.end(usage(), complete=False)
    assert world.left == [4, 2, reserved]


async def test_a_call_that_is_made_again_is_charged_again() -> None:
    world = World()
    meter = world.meter()
    for _ in range(2):
        await meter.begin()
        meter.sent()
    assert world.left[:2] == [3, 1]
    meter.end(usage(90, 7), complete=True)
    assert world.left == [3, 2, 903]
    meter.end(usage(90, 7), complete=True)
    assert world.left == [3, 2, 903], "it ends once"


@pytest.mark.parametrize(
    ("world", "unit"),
    [
        (World(requests=0), "requests"),
        (World(at_a_time=0), "concurrent"),
        (World(tokens=20), "tokens"),
    ],
)
async def test_what_finds_too_little_is_refused_and_charged_nothing(
    world: World, unit: str
) -> None:
    before = world.left
    with pytest.raises(LimitedError) as refused:
        await world.meter().begin()
    error = refused.value
    assert error.provider == "p"
    assert error.refused.unit == unit
    assert error.retry_after_s is not None
    assert error.retry_after_s > 0
    assert world.left == before
    assert world.door.tallies.open == 0


async def test_other_providers_and_clients_own_accounts_are_free() -> None:
    world = World(requests=0)
    other = world.meter("q")
    await other.begin()
    other.sent()
    other.end(usage(90, 7), complete=True)
    own = meter_of(None)
    await own.begin()
    own.end(usage(), complete=True)
    assert [whole(share)[1] for share in world.shares] == [0, 0, 0]


async def test_cost_is_charged_by_the_price_of_the_target() -> None:
    limits = LimitWorld()
    share = World.add(limits, limit("cost", scope="provider=p"), 100_000)
    door = Admission(limits.rules, limits.rights, clock=limits, rng=random.Random(1))
    meter = meter_of(door, price=parse_price({"prompt": 2.0, "cached": 0.5, "answer": 10.0}))
    await meter.begin()
    assert share.spent >= 50 * 10, "as much of an answer as its client lets it have"
    meter.sent()
    used = usage(90, 7)
    used.cached_tokens = 40
    meter.end(used, Spent(Usage(90, 7, 40)), complete=True)
    assert share.spent == 50 * 2 + 40 * 0.5 + 7 * 10
