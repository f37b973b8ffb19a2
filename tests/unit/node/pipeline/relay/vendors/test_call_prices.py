"""What a request may cost is the dearest of its targets, and what it did cost the sum of the calls that were answered."""

from datetime import date
from typing import Any, cast

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.core.prices.price import Price, Rates, day_number
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.prices.price_parser import parse_price
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_context import Spent
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.vendors.call_prices import CallPrices

NOW_MS = day_number(date(2026, 11, 28)) * 86_400_000
BODY = {"model": "m", "messages": [{"role": "user", "content": "x" * 400}]}
MILLION = 1_000_000


class Side:
    dialects = ("chat",)

    def __init__(self, name: str, price: Price | None) -> None:
        self.provider, self.model, self.price = name, "theirs", price


class At:
    """A worker, as far as prices look at it."""

    role = "regular"
    pairing = None

    def __init__(self, side: Side | None) -> None:
        self.engine = HttpEngine.__new__(HttpEngine)
        self.engine.vendor = cast("VendorSide | None", side)
        self.engine.lacks = set()  # type: ignore[attr-defined]  # of a worker of ours


def at(name: str, **price: Any) -> Worker:
    return cast("Worker", At(Side(name, parse_price(price) if price else None)))


def prices(**more: Any) -> CallPrices:
    raw = msgspec.json.encode({**BODY, **more})
    asked = relayable(APIS["chat"], raw, {**BODY, **more})
    return CallPrices(PriceBook(), asked, lambda: NOW_MS)


def expected(of: CallPrices, *workers: Worker, worst: bool = False, allow: bool = False) -> Rates:
    found = of.expected("m", workers, worst_case=worst, unpriced=allow)
    assert found is not None
    return found


def test_the_dearest_of_all_targets_is_charged_part_by_part() -> None:
    cheap = at("a", prompt=1, written=1.25, answer=30, per_call=0.001)
    dear = at("b", prompt=4, cached=0.4, written=5, written_long=8, answer=20)
    rates = expected(prices(), cheap, dear, at("c"))
    assert rates == Rates(*4 * (8 * MILLION,), 30 * MILLION, 1_000_000_000)


@pytest.mark.parametrize(
    ("tier", "answer"), [(None, 20), ("flex", 20), ("priority", 40), ("auto", 40), ("odd", 20)]
)
def test_the_tier_that_is_asked_for_counts_and_any_where_the_vendor_chooses(
    tier: str | None, answer: int
) -> None:
    target = at("a", answer=20, tiers={"flex": {"answer": 10}, "priority": {"answer": 40}})
    of = prices() if tier is None else prices(service_tier=tier)
    assert expected(of, target).answer == answer * MILLION


def test_in_the_worst_case_each_byte_is_a_token_and_steps_that_it_may_pass_count() -> None:
    target = at("a", prompt=1, steps=[{"above": 300, "prompt": 2}, {"above": 9_999, "prompt": 7}])
    of = prices()
    size, counted = len(of._asked.raw), of._asked.prompt_tokens
    assert 300 < size < 9_999
    assert expected(of, target).per_call == 0
    worst = expected(of, target, worst=True)
    assert worst.prompt == 2 * MILLION
    assert worst.per_call == (size - counted) * 2 * MILLION


def test_what_nobody_knows_the_price_of_is_refused_unless_that_is_allowed() -> None:
    of, unpriced = prices(), at("a")
    assert not of.known(unpriced)
    with pytest.raises(SmgError) as caught:
        expected(of, unpriced)
    assert (caught.value.status, caught.value.code) == (403, "unpriced_model")
    assert expected(of, unpriced, allow=True) == Rates()
    assert expected(of, unpriced, at("b", prompt=3)).prompt == 3 * MILLION


def test_where_no_vendor_is_among_them_the_models_own_price_counts() -> None:
    of = prices()
    assert of.expected("m", [], worst_case=False, unpriced=False) is None
    assert of.cost_micro is None


def test_calls_are_billed_by_what_they_used_and_those_without_an_answer_are_not() -> None:
    of = prices(service_tier="flex")
    side = Side("a", parse_price({"prompt": 2, "answer": 8, "tiers": {"flex": {"prompt": 1}}}))
    own, unknown = Side("b", None), Side("c", None)
    of.called(cast("VendorSide", side), None)
    assert (of.cost_micro, of.last_micro, of.bills) == (0, 0, [])
    of.called(cast("VendorSide", side), Spent(Usage(10, 1, 0), estimated=True))
    assert of.last_micro == 18
    of.called(cast("VendorSide", side), Spent(Usage(10, 1, 0, service_tier="default")))
    of.called(cast("VendorSide", own), Spent(Usage(1, 1, 0, cost_pico=1)))
    of.called(cast("VendorSide", unknown), Spent(Usage(1, 1, 0)))
    assert [(one.provider, one.cost_pico, one.estimated) for one in of.bills] == [
        ("a", 18 * MILLION, True),
        ("a", 28 * MILLION, False),
        ("b", 1, False),
        ("c", None, False),
    ]
    assert (of.cost_micro, of.last_micro) == (18 + 28 + 1, 0)
