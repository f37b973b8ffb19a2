"""What a call costs is exact, by the length of its prompt, its tier and the day."""

from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.events import Usage
from smg_node.core.prices.cost import (
    ALL_TIERS,
    call_pico,
    cost_pico,
    dearest,
    expected_dollars,
    micro_up,
    rates_of,
)
from smg_node.core.prices.price import PICO, Price, Rates, day_number, flat_price, pico_of
from smg_node.core.prices.price_parser import parse_price

TODAY = day_number(date(2026, 11, 28))
SOL: dict[str, Any] = {
    "periods": [
        {"prompt": 5, "cached": 0.5, "written": 6.25, "answer": 30},
        {
            "from": "2026-08-21",
            "prompt": 4,
            "cached": 0.4,
            "written": 5,
            "written_long": 8,
            "answer": 20,
            "per_call": 0.001,
            "server_tools": {"web_search": 0.01},
            "steps": [{"above": 272_000, "prompt": 8, "cached": 0.8, "written": 10, "answer": 30}],
            "tiers": {
                "flex": {
                    "prompt": 2,
                    "answer": 10,
                    "steps": [{"above": 272_000, "prompt": 4, "answer": 15}],
                },
                "priority": {"prompt": 8},
            },
        },
    ]
}
PRICE = parse_price(SOL)


def _told(
    tokens: tuple[int, int, int, int, int],
    *,
    tier: str = "",
    tools: tuple[tuple[str, int], ...] = (),
    cost: int | None = None,
) -> Usage:
    """A usage of prompt, cached, written, written for long, and answer."""
    prompt, cached, written, long, answer = tokens
    return Usage(prompt, answer, cached, 0, written, long, tier, tools, cost)


@pytest.mark.parametrize(
    ("used", "asked", "day", "dollars"),
    [
        # 1,000 at 4, 500 answered at 20, and the call.
        (_told((1000, 0, 0, 0, 500)), "", TODAY, "0.015"),
        # 400 read at 0.4, 300 written at 5, 100 of them for long at 8, 300 new at 4.
        (_told((1000, 400, 300, 100, 0)), "", TODAY, "0.00416"),
        # The day before the price fell; nothing was said of the call then.
        (_told((1000, 0, 0, 0, 500)), "", day_number(date(2026, 8, 20)), "0.02"),
        (_told((1000, 0, 0, 0, 500)), "", day_number(date(2026, 8, 21)), "0.015"),
        # The step counts for all tokens, and only above it.
        (_told((272_000, 0, 0, 0, 0)), "", TODAY, "1.089"),
        (_told((272_001, 0, 0, 0, 0)), "", TODAY, "2.177008"),
        # A tier's own prices; what it does not say is as usual, its steps too.
        (_told((1000, 0, 0, 0, 500), tier="flex"), "", TODAY, "0.008"),
        (_told((300_000, 100_000, 0, 0, 0), tier="flex"), "", TODAY, "0.881"),
        (_told((1000, 0, 0, 0, 500), tier="priority"), "", TODAY, "0.019"),
        (_told((1000, 0, 0, 0, 500), tier="PRIORITY"), "", TODAY, "0.019"),
        # What was asked for counts where the vendor does not say what it served.
        (_told((1000, 0, 0, 0, 500)), "flex", TODAY, "0.008"),
        (_told((1000, 0, 0, 0, 500), tier="default"), "flex", TODAY, "0.015"),
        # A tier without a price of its own is the usual one.
        (_told((1000, 0, 0, 0, 500), tier="scale"), "", TODAY, "0.015"),
        (_told((1000, 0, 0, 0, 0), tools=(("web_search", 3), ("other", 9))), "", TODAY, "0.035"),
        # A vendor's own bill goes before any price.
        (_told((1000, 0, 0, 0, 500), cost=PICO // 8), "", TODAY, "0.125"),
        # More cached and written than there is: never below nothing.
        (_told((10, 100, 100, 100, 0)), "", TODAY, "0.001004"),
    ],
)
def test_costs_are_exact(used: Usage, asked: str, day: int, dollars: str) -> None:
    assert call_pico(PRICE, used, tier=asked, day=day) == Fraction(dollars) * PICO


def test_nothing_is_known_without_a_price_or_before_its_first_day() -> None:
    later = parse_price({"from": "2026-12-01", "prompt": 1})
    used = _told((1, 0, 0, 0, 1))
    assert call_pico(None, used, day=TODAY) is None
    assert call_pico(later, used, day=TODAY) is None
    assert call_pico(None, _told((1, 0, 0, 0, 1), cost=7), day=TODAY) == 7
    assert rates_of(later, prompt=1, day=TODAY) is None
    assert dearest(later, prompt_max=1, day=TODAY) is None
    assert expected_dollars(later, prompt=1, day=TODAY) == float("inf")


def test_what_is_expected_is_told_in_dollars() -> None:
    expected = expected_dollars(PRICE, prompt=1000, cached=400, written=300, answer=50, day=TODAY)
    assert expected == (300 * 4 + 400 * 0.4 + 300 * 5 + 50 * 20 + 1000) / 1e6


def test_what_is_charged_is_rounded_up_to_a_millionth() -> None:
    assert [micro_up(pico) for pico in (0, 1, 1_000_000, 1_000_001)] == [0, 1, 1, 2]


def test_the_three_numbers_of_a_model_are_a_price_for_every_call() -> None:
    price = flat_price(Rates(pico_of(0.3), pico_of(0.1), 0, 0, pico_of(0.6)))
    assert price.plain
    assert not PRICE.plain
    rates = rates_of(price, prompt=10**9, tier="flex", day=0)
    assert rates is not None
    # What floats make a little more of than there is.
    assert cost_pico(rates, Usage(3, 0, 0)) == 900_000
    assert pico_of(0.0375) == 37_500


_tokens = st.integers(0, 400_000)
_usages = st.builds(
    _told,
    st.tuples(_tokens, _tokens, _tokens, _tokens, _tokens),
    tier=st.sampled_from(["", "default", "flex", "priority", "scale"]),
)
_prices = st.sampled_from([PRICE, parse_price({"prompt": 3, "written": 4, "answer": 15})])


@given(_usages, _prices)
def test_no_call_costs_more_than_the_dearest_says(used: Usage, price: Price) -> None:
    most = dearest(price, prompt_max=used.prompt_tokens, tier=ALL_TIERS, day=TODAY)
    spent = call_pico(price, used, day=TODAY)
    assert most is not None
    assert spent is not None
    assert spent <= cost_pico(most, used)
    own = dearest(price, prompt_max=used.prompt_tokens, tier=used.service_tier, day=TODAY)
    assert own is not None
    assert spent <= cost_pico(own, used)


@given(_usages, _usages)
def test_costs_of_calls_add_up(first: Usage, second: Usage) -> None:
    price = parse_price({"prompt": 0.3, "cached": 0.03, "written": 0.375, "answer": 1.1})

    def exact(one: Usage) -> Fraction:
        cached = min(one.cached_tokens, one.prompt_tokens)
        written = min(one.cache_write_tokens, one.prompt_tokens - cached)
        fresh = one.prompt_tokens - cached - written
        millions = fresh * Fraction("0.3") + cached * Fraction("0.03")
        millions += written * Fraction("0.375") + one.completion_tokens * Fraction("1.1")
        return millions / 1_000_000

    told = [call_pico(price, one, day=TODAY) for one in (first, second)]
    assert sum(one or 0 for one in told) == (exact(first) + exact(second)) * PICO
