"""What vendors have billed is counted by provider, exact, and in rows that an older release can add up."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import Line
from smg_node.core.generation.events import Usage
from smg_node.core.generation.outcome import Bill, Outcome, OutcomeKind
from smg_node.core.prices.price import Price
from smg_node.core.prices.price_list import PriceList
from support.http.request_usage import Wall, flat, outcome

PRICES = {"m": flat(2.0, 0.5, 10.0)}


def book(**of: Price) -> UsageBook:
    return UsageBook(PriceList(of), now_ms=Wall().now_ms, life="a")


def billed(*bills: Bill, kind: OutcomeKind = "ok", **more: Any) -> Outcome:
    return msgspec.structs.replace(outcome(kind=kind, **more), bills=bills)


FIRST = Bill("ant", "claude", Usage(100, 7, 40, 0, 30, 10), 1_500_000, estimated=True)
SECOND = Bill("bed", "eu.claude", Usage(90, 50, 0), 2_250_001)


def test_a_request_is_one_of_who_answered_it_and_each_call_is_billed_where_it_was_made() -> None:
    usage = book()
    usage.record(billed(FIRST, SECOND))
    usage.record(outcome())
    rows = {one.who: one for one in usage.lines()}
    first, second, own = (rows["acme", "k1", "m", who, ""] for who in ("ant", "bed", ""))
    assert (first.requests, first.calls, first.estimated, first.cost, first.pico) == (
        *(0, 1, 1, 1),
        500_000,
    )
    assert (first.prompt, first.cached, first.written, first.answer) == (100, 40, 30, 7)
    assert (second.requests, second.calls, second.cost, second.pico) == (1, 1, 2, 250_001)
    assert (own.requests, own.calls, own.cost) == (1, 0, 0)
    assert {pair: (one.calls, one.cost) for pair, one in usage.of_providers().items()} == {
        ("ant", "m"): (1, 1),
        ("bed", "m"): (1, 2),
    }
    assert usage.pairs()["acme", "m"].cost == 3


@pytest.mark.parametrize(("kind", "requests", "refused"), [("failed", 1, 0), ("refused", 0, 1)])
def test_what_was_billed_counts_also_where_nobody_got_anything(
    kind: OutcomeKind, requests: int, refused: int
) -> None:
    usage = book()
    usage.record(billed(SECOND, kind=kind, answer=0, attempts=1))
    (line,) = usage.lines()
    assert (line.requests, line.refused, line.calls, line.cost) == (requests, refused, 1, 2)


def test_a_call_without_a_price_is_counted_as_one() -> None:
    usage = book(m=PRICES["m"])
    usage.record(billed(msgspec.structs.replace(SECOND, cost_pico=None)))
    (line,) = usage.lines()
    assert (line.calls, line.unpriced, line.cost, line.prompt) == (1, 1, 0, 90)


def test_a_release_without_providers_adds_their_rows_up_as_parts_of_their_own() -> None:
    usage = book()
    usage.record(billed(FIRST, SECOND))
    packed = [msgspec.msgpack.encode(one) for one in usage.lines()]
    old = [msgspec.msgpack.decode(one, type=list[Any])[:11] for one in packed]
    known = {(one[0], one[1], *one[2:5]) for one in old}
    assert len(known) == 2
    assert sum(one[10] for one in old) == 3
    read = [msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Line) for one in old]
    assert [one.provider for one in read] == ["", ""]


def test_rows_of_providers_are_written_once_and_drained_whole() -> None:
    usage, whole = book(), book()
    usage.record(billed(FIRST, SECOND))
    told = usage.unwritten()
    usage.written(told)
    assert usage.unwritten() == []
    whole.take(usage.drain())
    assert sorted(one.who for one in whole.lines()) == sorted(one.who for one in told)
    assert sum(one.cost * 1_000_000 + one.pico for one in whole.lines()) == 3_750_001


@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=20), st.integers(1, 3))
def test_sums_of_costs_are_exact_however_they_are_spread(costs: list[int], books: int) -> None:
    each = [book() for _ in range(books)]
    whole = book()
    for at, cost in enumerate(costs):
        bill = msgspec.structs.replace(SECOND, cost_pico=cost)
        each[at % books].record(billed(bill))
    for one in each:
        whole.take(one.drain())
    (line,) = whole.lines()
    assert line.cost * 1_000_000 + line.pico == sum(costs)
    assert 0 <= line.pico < 1_000_000
