"""Cells of our own make the page that the client library would have made."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from smg_node.core.generation.outcome import Outcome
from smg_node.telemetry.metrics.cells import Cells, Spread, Tally
from smg_node.telemetry.metrics.meters import AT_ONCE, Meters
from smg_node.telemetry.metrics.metric import Metric

BOUNDS = (0.005, 0.1, 1.0, 30.0, 2_000_000.0)
COUNTED = Metric("smg_things_total", "counter", 'Things, "so to speak".', ("kind", "size"))
PLAIN = Metric("smg_plain_total", "counter", "Without labels.")
LEVEL = Metric("smg_level", "gauge", "A level.", ("place",))
TIMES = Metric("smg_times_seconds", "histogram", "Times.", ("kind",), BOUNDS)
ALONE = Metric("smg_alone_seconds", "histogram", "Times without labels.", (), BOUNDS)
PULLED = Metric("smg_pulled", "gauge", "Read elsewhere.", pulled=True)
METRICS = (COUNTED, PLAIN, LEVEL, TIMES, ALONE, PULLED)

amounts = st.one_of(st.sampled_from([0.0, *BOUNDS, 1e9]), st.floats(0, 1e7))
labels = st.sampled_from(["a", "b", 'odd "\\\n'])
steps = st.tuples(st.sampled_from(METRICS[:-1]), labels, labels, amounts)


def nothing() -> None:
    return


def page_of(registry: CollectorRegistry, accept: str) -> bytes:
    page: bytes = choose_encoder(accept)[0](registry)
    return page


def theirs(told: list[tuple[Metric, str, str, float]]) -> CollectorRegistry:
    """Count the same with the client library."""
    registry = CollectorRegistry()
    counted = Counter(COUNTED.name, COUNTED.meaning, COUNTED.labels, registry=registry)
    plain = Counter(PLAIN.name, PLAIN.meaning, registry=registry)
    level = Gauge(LEVEL.name, LEVEL.meaning, LEVEL.labels, registry=registry)
    times = Histogram(TIMES.name, TIMES.meaning, TIMES.labels, registry=registry, buckets=BOUNDS)
    alone = Histogram(ALONE.name, ALONE.meaning, registry=registry, buckets=BOUNDS)
    for metric, one, other, amount in told:
        if metric is COUNTED:
            counted.labels(one, other).inc(amount)
        elif metric is PLAIN:
            plain.inc(amount)
        elif metric is LEVEL:
            level.labels(one).set(amount)
        elif metric is TIMES:
            times.labels(one).observe(amount)
        else:
            alone.observe(amount)
    return registry


def ours(told: list[tuple[Metric, str, str, float]]) -> CollectorRegistry:
    registry, cells = CollectorRegistry(), Cells(METRICS, before=nothing)
    registry.register(cells)
    for metric, one, other, amount in told:
        if metric is COUNTED:
            cells.tally(COUNTED, one, other).inc(amount)
        elif metric is PLAIN:
            cells.tally(PLAIN).inc(amount)
        elif metric is LEVEL:
            cells.tally(LEVEL, one).value = amount
        elif metric is TIMES:
            cells.spread(TIMES, one).observe(amount)
        else:
            cells.spread(ALONE).observe(amount)
    return registry


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
@given(told=st.lists(steps, max_size=30))
def test_the_page_is_byte_for_byte_that_of_the_client_library(
    accept: str, told: list[tuple[Metric, str, str, float]]
) -> None:
    created = re.compile(rb"\n[^\n]*_created[ {][^\n]*")
    assert page_of(ours(told), accept) == created.sub(b"", page_of(theirs(told), accept))


def test_a_cell_is_kept_and_cannot_shrink() -> None:
    cells = Cells(METRICS, before=nothing)
    one = cells.tally(COUNTED, "a", "b")
    assert cells.tally(COUNTED, "a", "b") is one
    assert cells.tally(COUNTED, "a", "c") is not one
    with pytest.raises(AssertionError):
        one.inc(-1)
    spread = cells.spread(TIMES, "a")
    assert cells.spread(TIMES, "a") is spread
    for amount in (0.005, 0.006, 3e6):
        spread.observe(amount)
    assert list(spread.counts) == [1, 1, 0, 0, 0, 1]
    assert spread.sum == pytest.approx(3e6 + 0.011)


def test_whoever_adds_late_is_asked_before_anybody_reads() -> None:
    def add() -> None:
        cells.tally(PLAIN).inc()

    cells = Cells(METRICS, before=add)
    assert isinstance(cells.tallies(PLAIN)[()], Tally)
    assert isinstance(cells.spreads(ALONE)[()], Spread)
    list(cells.collect())
    assert cells.tally(PLAIN).value == 3


@pytest.mark.parametrize("count", [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1])
def test_generations_are_counted_when_somebody_looks(count: int) -> None:
    meters = Meters(CollectorRegistry(), version="1")
    over = Outcome(
        dialect="chat", model="m", worker="w", kind="ok", error_code="", status=200, streamed=True,
        prompt_tokens=10, cached_tokens=4, completion_tokens=5,
        received_s=100.0, first_token_s=100.5, ended_s=101.5,
    )  # fmt: skip
    for _ in range(count):
        meters.generation(over)
    read = meters.registry.get_sample_value
    assert read("smg_node_prompt_tokens_total", {"model": "m"}) == 10 * count
    assert read("smg_node_time_to_first_token_seconds_count", {"model": "m"}) == count
    assert read("smg_node_prompt_tokens_total", {"model": "m"}) == 10 * count
