"""Runs of tools are counted by tenant, key, server and tool, exact, and in rows of their own."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.admission.usage.tool_usage import RunOutcome, ToolUsage
from smg_node.admission.usage.usage_book import ROWS_MAX, TOOL_ROWS_MAX, UsageBook
from smg_node.admission.usage.usage_lines import NONE, OTHER, Line, merged
from smg_node.core.prices.price_list import PriceList
from smg_node.processes.reports.usage_messages import pack_used, read_used
from support.http.request_usage import Wall, outcome


def book(wall: Wall | None = None) -> UsageBook:
    return UsageBook(PriceList(), now_ms=(wall or Wall()).now_ms, life="a")


def ran(
    usage: UsageBook,
    tool: str = "web",
    what: RunOutcome = "ok",
    *,
    server: str = "search",
    seconds: float = 0.5,
    size: int = 100,
    price: str = "0.005",
) -> None:
    ToolUsage(usage).ran(
        "acme", "k1", server, tool, what, seconds=seconds, answer_bytes=size, price=price
    )


def counted(usage: UsageBook) -> dict[str, tuple[int, ...]]:
    """Runs, failed ones, milliseconds, bytes, cost: of each tool."""
    return {
        one.tool: (one.runs, one.failed, one.run_ms, one.run_bytes, one.cost)
        for one in usage.lines()
    }


def test_runs_are_counted_by_tool_and_are_no_requests() -> None:
    usage = book()
    ran(usage)
    ran(usage, what="timeout", seconds=60.0, size=0)
    ran(usage, "images", price="")
    ran(usage, "any", server="", price="0.25")
    ran(usage, "other", server="", price="0.25")
    usage.record(outcome())
    assert counted(usage) == {
        "search/web": (2, 1, 60_500, 100, 10_000),
        "search/images": (1, 0, 500, 100, 0),
        "@client/any": (2, 0, 1_000, 200, 500_000),
        "": (0, 0, 0, 0, 0),
    }
    rows = {one.tool: one for one in usage.lines()}
    assert rows["search/web"].who == ("acme", "k1", "", "", "search/web")
    assert [one.requests for one in rows.values()] == [0, 0, 0, 1]
    assert usage.pairs()["acme", NONE].cost == 510_000
    assert usage.pairs()["acme", NONE].requests == 0


@pytest.mark.parametrize("what", get_args(RunOutcome))
def test_whatever_was_made_and_did_not_end_well_has_failed(what: RunOutcome) -> None:
    usage = book()
    ran(usage, what=what)
    if what in ("refused", "limited"):
        assert usage.lines() == []
    else:
        (line,) = usage.lines()
        assert (line.runs, line.failed, line.cost) == (1, int(what != "ok"), 5_000)


def test_so_many_tools_are_counted_apart_and_take_no_room_from_requests() -> None:
    usage = book()
    for at in range(TOOL_ROWS_MAX + 5):
        ran(usage, f"t{at}")
        ran(usage, "t0")
    for at in range(ROWS_MAX + 5):
        usage.record(outcome(key_id=f"k{at}"))
    lines = usage.lines()
    of_tools = [one for one in lines if one.tool]
    assert len(of_tools) == TOOL_ROWS_MAX + 1
    assert sum(one.runs for one in of_tools) == 2 * (TOOL_ROWS_MAX + 5)
    (others,) = [one for one in of_tools if one.tool == OTHER]
    assert (others.tenant, others.key_id, others.runs) == (OTHER, OTHER, 5)
    of_requests = [one for one in lines if not one.tool]
    assert len(of_requests) == ROWS_MAX + 1
    assert sum(one.requests for one in of_requests) == ROWS_MAX + 5


def test_what_is_drained_leaves_room_for_as_many_again() -> None:
    usage, whole = book(), book()
    for turn in range(3):
        for at in range(TOOL_ROWS_MAX):
            ran(usage, f"t{turn}-{at}")
        lines = read_used(pack_used(usage.drain()))
        assert {one.tool for one in lines}.isdisjoint({OTHER})
        whole.take(lines)
    assert len(whole.lines()) == TOOL_ROWS_MAX + 1
    assert sum(one.runs for one in whole.lines()) == 3 * TOOL_ROWS_MAX


def test_rows_of_tools_are_written_when_they_have_grown() -> None:
    wall = Wall()
    usage = book(wall)
    ran(usage)
    ran(usage, "images")
    told = usage.unwritten()
    assert sorted(one.part for one in told) == ["a.1@search/images", "a.1@search/web"]
    usage.written(told)
    assert usage.unwritten() == []
    ran(usage)
    (grown,) = usage.unwritten()
    latest = merged(told, [grown])
    assert {who[-1]: one.runs for (_, _, who), one in latest.items()} == {
        "search/web": 2,
        "search/images": 1,
    }
    wall.pass_hours(1)
    ran(usage)
    assert {one.part for one in usage.unwritten()} == {"a.1@search/web", "a.2@search/web"}


def test_somebody_is_told_when_there_is_something_to_write() -> None:
    usage, told = book(), []
    usage.tell(lambda: told.append(1))
    ran(usage)
    ran(usage)
    assert told == [1]


def test_a_release_without_tools_takes_their_rows_for_parts_of_their_own() -> None:
    usage = book()
    ran(usage)
    ran(usage, "images")
    old = [
        msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=list[Any])[:17]
        for one in usage.lines()
    ]
    assert len({(one[0], one[1], *one[2:5], one[11]) for one in old}) == 2
    assert sum(one[10] for one in old) == 10_000
    read = [msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Line) for one in old]
    assert [(one.tool, one.runs, one.cost) for one in read] == [("", 0, 5_000), ("", 0, 5_000)]


def test_what_is_no_price_counts_nothing() -> None:
    usage = book()
    with pytest.raises(ValueError, match="decimal"):
        ran(usage, price="much")
    assert usage.lines() == []


@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=20), st.integers(1, 3))
def test_sums_of_prices_are_exact_however_they_are_spread(costs: list[int], books: int) -> None:
    each = [book() for _ in range(books)]
    whole = book()
    for at, pico in enumerate(costs):
        ran(each[at % books], price=f"{pico // 10**12}.{pico % 10**12:012}")
    for one in each:
        whole.take(one.drain())
    (line,) = whole.lines()
    assert line.cost * 1_000_000 + line.pico == sum(costs)
    assert line.runs == len(costs)
