import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from smg_node.admission.admission_settings import Counting, prices
from smg_node.admission.usage.usage_book import AT_ONCE, HOURS_MAX, PAIRS_MAX, ROWS_MAX, UsageBook
from smg_node.admission.usage.usage_lines import NONE, OTHER, Line, merged
from smg_node.core.generation.outcome import Outcome, OutcomeKind
from smg_node.core.prices.price import Price, Rates, Step, pico_of
from smg_node.core.prices.price_list import PriceList
from smg_node.telemetry.metrics.declared import usage as usage_metrics
from smg_node.telemetry.metrics.meters import Meters
from support.http.request_usage import MIDNIGHT, Wall, flat, outcome

PRICES = {"m": flat(2.0, 0.5, 10.0)}


def book(wall: Wall | None = None, **of: Price) -> UsageBook:
    return UsageBook(PriceList(of), now_ms=(wall or Wall()).now_ms, life="a")


def used(usage: UsageBook) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Requests, refused, prompt, cached, answer, cost: of each."""
    return {
        one.who[:3]: (one.requests, one.refused, one.prompt, one.cached, one.answer, one.cost)
        for one in usage.lines()
    }


def test_requests_tokens_and_cost_are_counted_by_tenant_key_and_model() -> None:
    usage = book(m=PRICES["m"])
    usage.record(outcome())
    usage.record(outcome(prompt=1, cached=0, answer=0))
    usage.record(outcome(key_id="k2"))
    usage.record(outcome(model="free"))
    usage.record(outcome("", key_id=""))
    one = (1, 0, 10, 4, 5, 6 * 2 + 2 + 50)
    assert used(usage) == {
        ("acme", "k1", "m"): (2, 0, 11, 4, 5, 64 + 2),
        ("acme", "k2", "m"): one,
        ("acme", "k1", "free"): (*one[:5], 0),
        ("", "", "m"): one,
    }
    assert {(line.part, line.hour) for line in usage.lines()} == {("a.1", MIDNIGHT)}


def test_passes_of_a_request_are_paid_one_by_one_and_it_counts_once() -> None:
    [period] = PRICES["m"].periods
    dear = Step(100, Rates(prompt=pico_of(20.0), answer=pico_of(100.0)))
    usage = book(m=Price((replace(period, steps=(*period.steps, dear)),)))
    long = outcome(prompt=160, cached=0, answer=10)
    tokens = ((80, 0, 5), (80, 0, 5))
    usage.record(replace(long, passes=2, pass_tokens=tokens))
    assert used(usage)["acme", "k1", "m"] == (1, 0, 160, 0, 10, 2 * (80 * 2 + 5 * 10))
    usage.record(outcome(model="x"))
    refused = replace(long, kind="refused", status=429, passes=2, pass_tokens=tokens[:1])
    usage.record(refused)
    failed = replace(long, kind="failed", status=502, passes=2, pass_tokens=tokens[:1])
    usage.record(failed)
    cost = 4 * (80 * 2 + 5 * 10)
    assert used(usage)["acme", "k1", "m"] == (2, 1, 320, 0, 20, cost)


def test_fractions_of_a_millionth_add_up() -> None:
    usage = book(m=flat(0.25, 0.0, 0.0))
    usage.record(outcome(prompt=1, cached=0, answer=0))
    usage.record(outcome(prompt=5, cached=0, answer=0))
    (line,) = usage.lines()
    assert (line.cost, line.pico) == (1, 500_000)
    usage.record(outcome(prompt=2, cached=0, answer=0))
    (line,) = usage.lines()
    assert (line.cost, line.pico) == (2, 0)


def test_what_was_used_before_a_change_of_prices_keeps_its_cost() -> None:
    usage = book(m=flat(1.0, 1.0, 1.0))
    usage.record(outcome())
    usage.retune(PriceList({"m": flat(2.0, 2.0, 2.0)}))
    usage.record(outcome())
    usage.retune(PriceList())
    usage.record(outcome())
    assert used(usage)["acme", "k1", "m"][-1] == 15 + 30


def test_more_is_never_cached_than_asked() -> None:
    usage = book(m=PRICES["m"])
    usage.record(outcome(prompt=3, cached=400, answer=0))
    assert used(usage)["acme", "k1", "m"] == (1, 0, 3, 3, 0, 1)


@pytest.mark.parametrize(
    ("kind", "status", "answer", "attempts", "counted"),
    [
        ("ok", 200, 0, 1, (1, 0, 10, 4, 0)),
        ("ok", 200, 5, 1, (1, 0, 10, 4, 5)),
        ("refused", 429, 0, 0, (0, 1, 0, 0, 0)),
        ("refused", 400, 0, 0, (0, 1, 0, 0, 0)),
        ("failed", 502, 0, 3, (1, 0, 0, 0, 0)),
        ("failed", 502, 2, 3, (1, 0, 10, 4, 2)),
        ("failed", 501, 0, 0, (0, 0, 0, 0, 0)),
        ("client_gone", 499, 0, 0, (1, 0, 0, 0, 0)),
        ("client_gone", 499, 0, 1, (1, 0, 10, 4, 0)),
        ("client_gone", 499, 2, 1, (1, 0, 10, 4, 2)),
    ],
)
def test_only_what_was_worked_on_has_tokens(
    kind: OutcomeKind, status: int, answer: int, attempts: int, counted: tuple[int, ...]
) -> None:
    usage = book()
    usage.record(outcome(kind=kind, status=status, answer=answer, attempts=attempts))
    assert used(usage)["acme", "k1", "m"][:5] == counted


def test_an_hour_that_is_over_is_another_part_and_stays_until_it_is_written() -> None:
    wall = Wall()
    usage = book(wall)
    usage.record(outcome())
    wall.pass_hours(1)
    usage.record(outcome())
    first, second = usage.lines()
    assert (first.hour, second.hour) == (MIDNIGHT, MIDNIGHT + 1)
    assert first.part != second.part
    usage.written([first])
    assert usage.lines() == [second]
    usage.written([second])
    assert usage.lines() == [second]
    assert usage.unwritten() == []


def test_what_grew_since_it_was_written_is_written_again_as_a_total() -> None:
    usage = book()
    usage.record(outcome())
    usage.record(outcome(model="n"))
    lines = usage.unwritten()
    usage.record(outcome())
    usage.written(lines)
    (more,) = usage.unwritten()
    assert (more.model, more.requests) == ("m", 2)
    assert usage.unwritten() == [more], "nobody has said that it is written"


events = st.one_of(
    st.builds(
        outcome,
        st.sampled_from(["acme", "zeta"]),
        st.sampled_from(["m", "free"]),
        kind=st.sampled_from(["ok", "ok", "ok", "refused", "failed", "client_gone"]),
        status=st.sampled_from([200, 501]),
        prompt=st.integers(0, 9),
        cached=st.integers(0, 12),
        answer=st.integers(0, 3),
        attempts=st.integers(0, 1),
    ),
    st.floats(0.01, 1.2),
    st.dictionaries(st.just("m"), st.builds(flat, *3 * [st.floats(0, 3)])),
)


@settings(max_examples=60)
@given(st.lists(st.tuples(events, st.sampled_from([1, 1, 2, AT_ONCE])), max_size=12))
def test_it_does_not_matter_how_often_somebody_looks(
    steps: list[tuple[Outcome | float | dict[str, Price], int]],
) -> None:
    walls = Wall(), Wall()
    watched, unwatched = (book(wall, m=PRICES["m"]) for wall in walls)
    for step, times in steps:
        if isinstance(step, float):
            for wall in walls:
                wall.pass_hours(step)
        elif isinstance(step, dict):
            watched.retune(PriceList(step))
            unwatched.retune(PriceList(step))
        else:
            for _ in range(times):
                watched.record(step)
                assert watched.lines()
                unwatched.record(step)
    assert watched.lines() == unwatched.lines()
    assert {pair: counts.cost for pair, counts in watched.pairs().items()} == {
        pair: counts.cost for pair, counts in unwatched.pairs().items()
    }


def test_the_hour_is_that_in_which_a_request_ended_where_that_is_known() -> None:
    wall = Wall()
    usage = book(wall)
    usage.record(replace(outcome(), ended_ms=wall.ms + 10))
    wall.pass_hours(1)
    usage.record(replace(outcome(), ended_ms=wall.ms - 5))
    usage.record(outcome())
    assert [(one.hour, one.requests) for one in usage.lines()] == [(MIDNIGHT, 2), (MIDNIGHT + 1, 1)]


def test_whoever_writes_is_told_once_until_it_has_looked() -> None:
    told = []
    usage = book()
    usage.tell(lambda: told.append(1))
    usage.record(outcome())
    usage.record(outcome())
    assert len(told) == 1
    usage.unwritten()
    usage.record(outcome())
    assert len(told) == 2


@pytest.mark.parametrize(("back_hours", "hours"), [(0.001, 1), (1.5, 2), (30, 2)])
def test_a_clock_that_is_put_back_loses_nothing(back_hours: float, hours: int) -> None:
    wall = Wall(MIDNIGHT + 0.0005)
    usage = book(wall)
    usage.record(outcome())
    wall.pass_hours(-back_hours)
    usage.record(outcome())
    assert len({line.hour for line in usage.lines()}) == hours
    assert sum(line.requests for line in usage.lines()) == 2


def test_an_hour_that_comes_twice_is_two_parts() -> None:
    wall = Wall()
    usage = book(wall)
    seen = list[Line]()
    for hours in (0, 5, -5, 5):
        wall.pass_hours(hours)
        usage.record(outcome())
        seen += usage.unwritten()
        usage.written(seen)
    latest = merged(seen)
    assert len(latest) == 4
    assert sum(line.requests for line in latest.values() if line.hour == MIDNIGHT) == 2


def test_there_are_only_so_many_rows_in_an_hour_and_the_rest_is_others() -> None:
    usage = book()
    for at in range(ROWS_MAX + 5):
        usage.record(outcome(f"t{at}"))
    usage.record(outcome("t0"))
    rows = used(usage)
    assert len(rows) == ROWS_MAX + 1
    assert rows[OTHER, OTHER, OTHER][0] == 5
    assert rows["t0", "k1", "m"][0] == 2


def test_a_disk_that_takes_nothing_costs_the_oldest_hours_only() -> None:
    wall = Wall()
    usage = book(wall)
    for _ in range(HOURS_MAX + 2):
        usage.record(outcome())
        wall.pass_hours(1)
    usage.record(outcome())
    assert usage.lost == 3
    assert len(usage.unwritten()) == HOURS_MAX
    assert usage.unwritten()[0].hour == MIDNIGHT + 3


def test_scrapes_see_tenants_and_models_since_the_start_whatever_was_written() -> None:
    wall = Wall()
    meters, usage = Meters(CollectorRegistry(), version="1"), book(wall, m=PRICES["m"])
    counting = Counting(meters, usage)
    meters.watch(usage_metrics.USAGE_REQUESTS, lambda: usage.read(lambda one: one.requests))
    meters.watch(usage_metrics.USAGE_COST_MICRO, lambda: usage.read(lambda one: one.cost))
    counting(outcome())
    counting(outcome(key_id="k2"))
    counting(outcome("", key_id="", model="free"))
    wall.pass_hours(1)
    counting(outcome())
    usage.written(usage.unwritten())
    page = meters.exposition("")[0].decode()
    for line in (
        'smg_node_usage_requests_total{model="m",tenant="acme"} 3.0',
        f'smg_node_usage_requests_total{{model="free",tenant="{NONE}"}} 1.0',
        'smg_node_usage_cost_micro_total{model="m",tenant="acme"} 192.0',
        'smg_node_completion_tokens_total{model="m"} 15.0',
    ):
        assert line in page


def test_scrapes_see_so_many_pairs_and_none_of_them_ever_shrinks() -> None:
    wall = Wall()
    usage = book(wall)
    for at in range(PAIRS_MAX - 1):
        usage.record(outcome(f"t{at}"))
    wall.pass_hours(1)
    usage.record(outcome("last"))
    for at in range(3):
        usage.record(outcome(f"more{at}"))
    before = usage.read(lambda one: one.requests)
    wall.pass_hours(1)
    usage.record(outcome("more1"))
    after = usage.read(lambda one: one.requests)
    assert before[OTHER, OTHER] == 3
    assert after[OTHER, OTHER] == 4
    assert ("last", "m") in after
    assert all(after[pair] >= before[pair] for pair in before)


def test_prices_are_those_of_the_settings() -> None:
    said: dict[str, dict[str, float | None]] = {
        "prompt_price": {"a": 2.5, "b": None},
        "cached_price": {"a": None, "b": 0.1},
        "answer_price": {"a": 10.0},
    }
    assert prices(lambda field: said[field]) == {
        "a": flat(2.5, 2.5, 10.0),
        "b": flat(0.0, 0.1, 0.0),
    }


def test_what_one_book_drains_another_one_takes_and_nothing_is_counted_twice() -> None:
    usage, whole, told = book(m=PRICES["m"]), book(), []
    whole.tell(lambda: told.append(1))
    usage.record(outcome())
    usage.record(outcome(key_id="k2"))
    whole.record(outcome())
    whole.unwritten()
    whole.take(usage.drain())
    assert usage.lines() == []
    assert used(whole)["acme", "k1", "m"] == (2, 0, 20, 8, 10, 64)
    assert used(whole)["acme", "k2", "m"][0] == 1
    assert len(told) == 2, "there is something to write"
    usage.record(outcome())
    whole.take(usage.drain())
    assert used(whole)["acme", "k1", "m"][0] == 3
    assert {one.part for one in whole.lines()} == {"a.1"}


def test_a_book_that_was_drained_says_again_that_there_is_something() -> None:
    usage, told = book(), []
    usage.tell(lambda: told.append(1))
    for _ in range(3):
        usage.record(outcome())
        usage.record(outcome())
        usage.drain()
    assert len(told) == 3


def test_what_is_taken_in_another_hour_is_of_that_hour() -> None:
    wall = Wall()
    usage, whole = book(wall), book(wall)
    usage.record(outcome())
    wall.pass_hours(1)
    whole.take(usage.drain())
    assert [line.hour for line in whole.lines() if line.events] == [MIDNIGHT + 1]
