"""Expected prices of a request: of the provider's model, else of the public name, by tier, day and what is cached."""

from datetime import date
from typing import Any

import pytest

from smg_node.core.prices.price import day_number
from smg_node.core.prices.price_list import PriceList
from smg_node.core.prices.price_parser import parse_price
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.routes.expected_prices import UNKNOWN, ExpectedPrices

PLACES = {"w-a": ("ant", "claude"), "w-b": ("bed", "eu.claude"), "w-own": ("", "")}


def prices_of(known: dict[str, Any], day: int = 20_000, **body: Any) -> ExpectedPrices:
    fields = {"model": "r", "messages": [{"role": "user", "content": "x" * 4000}], **body}
    asked = relayable(APIS["chat"], b"{}", fields)
    listed = PriceList({name: parse_price(said) for name, said in known.items()})
    return ExpectedPrices(listed, asked, "r", PLACES, day * 86_400_000)


def test_a_provider_s_own_price_goes_before_that_of_the_public_name() -> None:
    prices = prices_of({"ant/claude": {"prompt": 3, "answer": 15}, "r": {"prompt": 1, "answer": 5}})
    tokens = 4000 // 4
    own, other = (prices.dollars(worker, 0.0, 100) for worker in ("w-a", "w-b"))
    assert own == pytest.approx((tokens * 3 + 100 * 15) / 1e6, rel=0.02)
    assert other == pytest.approx((tokens * 1 + 100 * 5) / 1e6, rel=0.02)
    assert prices.dollars("w-own", 0.0, 100) == other


def test_what_nobody_has_said_is_unknown() -> None:
    prices = prices_of({"ant/claude": {"prompt": 3, "answer": 15}})
    assert prices.dollars("w-b", 0.0, 100) == UNKNOWN
    assert prices.dollars("w-strange", 0.0, 100) == UNKNOWN


def test_what_is_cached_costs_less() -> None:
    prices = prices_of({"r": {"prompt": 10, "cached": 1, "answer": 0}})
    full, half, none = (prices.dollars("w-a", share, 0) for share in (0.0, 0.5, 1.0))
    assert half == pytest.approx(0.55 * full, rel=0.01)
    assert none == pytest.approx(0.1 * full, rel=0.01)


def test_what_is_written_to_a_cache_costs_its_own_price() -> None:
    prices = prices_of({"r": {"prompt": 10, "cached": 1, "written": 12.5, "answer": 0}})
    new, written = prices.dollars("w-a", 0.0, 0), prices.dollars("w-a", 0.0, 0, 1.0)
    assert written == pytest.approx(1.25 * new, rel=0.01)
    assert prices.dollars("w-a", 0.8, 0, 0.2) == pytest.approx(0.33 * new, rel=0.01)


def test_tier_and_day_count() -> None:
    price = {"prompt": 10, "answer": 0, "tiers": {"flex": {"prompt": 5}}}
    assert prices_of({"r": price}, service_tier="flex").dollars("w-a", 0.0, 0) == pytest.approx(
        prices_of({"r": price}).dollars("w-a", 0.0, 0) / 2
    )
    later = {"periods": [{"from": "2026-08-21", "prompt": 4, "answer": 20}]}
    first = day_number(date(2026, 8, 21))
    assert prices_of({"r": later}, day=first - 1).dollars("w-a", 0.0, 0) == UNKNOWN
    assert prices_of({"r": later}, day=first).dollars("w-a", 0.0, 0) < 1
