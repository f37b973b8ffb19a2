from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.bench.figures.rows import (
    ALONE,
    Figure,
    Row,
    Times,
    figures_of,
    times_of,
    void_reasons,
)
from smg_chaos.bench.figures.table import table
from smg_chaos.bench.load.workloads import WORKLOADS, paced

SHORT, STREAM1, BURST = (WORKLOADS[name] for name in ("short", "stream1", "burst"))


def row(
    gateway: str = "a",
    *,
    number: int = 0,
    cpu_s: float = 1.0,
    requests: int = 1000,
    workload: str = "short",
    tokens: int = 8000,
) -> Row:
    return Row(
        workload=workload,
        gateway=gateway,
        round=number,
        seconds=4.0,
        requests=requests,
        tokens=tokens,
        gateway_cpu_s=cpu_s,
        engine_cpu_s=0.5,
        client_cpu_s=[0.25],
    )


def test_a_row_that_is_right_counts() -> None:
    assert void_reasons(row(), has_cpu=True, cores=1) == []


def test_a_row_counts_for_nothing_when_somebody_else_was_the_bottleneck() -> None:
    busy, hungry, many = row(cpu_s=3.9), row(), row(cpu_s=3.0)
    busy.client_cpu_s = [0.1, 3.3]
    hungry.engine_cpu_s = 1.01
    many.client_cpu_s = [1.6, 1.6]
    assert void_reasons(busy, has_cpu=True, cores=1) == ["a client used 82% of a core"]
    assert void_reasons(hungry, has_cpu=True, cores=1) == [
        "the engine used more CPU than the gateway"
    ]
    assert void_reasons(many, has_cpu=True, cores=1) == ["a client used more CPU than the gateway"]
    assert void_reasons(hungry, has_cpu=True, cores=2) == [], "there is plenty for all"
    assert void_reasons(busy, has_cpu=True, cores=2) == ["a client used 82% of a core"]


def test_where_the_gateways_cpu_is_unknown_it_is_not_compared() -> None:
    one = row(cpu_s=0.0)
    assert void_reasons(one, has_cpu=False, cores=1) == []


def test_a_wrong_answer_an_empty_row_and_a_full_queue_count_for_nothing() -> None:
    wrong, empty, full = row(), row(requests=0, tokens=0), row()
    wrong.errors, full.unsent = 1, 2
    assert [len(void_reasons(one, has_cpu=True, cores=1)) for one in (wrong, empty, full)] == [
        1,
        1,
        1,
    ]


def figure(rows: list[Row], gateway: str = "a", base: str | None = "b") -> Figure:
    figures = figures_of(rows, [SHORT], ["a", "b"], base)
    return next(one for one in figures if one.gateway == gateway)


def rounds(gateway: str, *costs_s: float) -> list[Row]:
    return [row(gateway, number=at, cpu_s=cost_s) for at, cost_s in enumerate(costs_s)]


def test_a_figure_is_the_median_with_its_spread_and_the_ratio_round_by_round() -> None:
    mine = figure([*rounds("a", 1.0, 1.1, 1.05), *rounds("b", 2.0, 2.0, 3.0)])
    assert mine.median == pytest.approx(1050)
    assert mine.spread == pytest.approx(0.1 / 1.05)
    assert mine.ratio == pytest.approx(0.5)
    assert mine.result
    assert mine.values == pytest.approx([1000, 1100, 1050])


def laps(gateway: str, *rounds_s: Sequence[float]) -> list[Row]:
    rows = []
    for number, costs_s in enumerate(rounds_s):
        for lap, cost_s in enumerate(costs_s):
            rows.append(row(gateway, number=number, cpu_s=cost_s))
            rows[-1].lap = lap
    return rows


def test_a_round_is_the_median_of_its_laps() -> None:
    mine = [
        *laps("a", (1.0, 1.1, 9.0), (1.2, 1.0, 1.0)),
        *laps("b", (2.2, 2.2, 2.2), (2.0, 8.0, 2.0)),
    ]
    told = figure(mine)
    assert told.values == pytest.approx([1100, 1000])
    assert told.ratio == pytest.approx(0.5)
    assert told.result


def test_laps_that_do_not_count_are_left_out_and_told_of() -> None:
    rows = laps("a", (1.0, 5.0, 1.1), (1.0, 1.0, 1.0))
    rows[1].void = ["a client used 90% of a core"]
    told = figure(rows)
    assert told.values == pytest.approx([1050, 1000])
    assert told.notes == ["round 1: a client used 90% of a core"]


def test_a_lap_of_a_burst_is_held_against_the_short_stream_of_the_same_lap() -> None:
    rows = []
    for lap, (short_s, long_s) in enumerate(((0.1, 0.1 + 0.256), (0.5, 0.5 + 0.256), (0.1, 0.356))):
        rows.append(row(workload="stream1", cpu_s=short_s, tokens=1000))
        rows.append(row(workload="burst", cpu_s=long_s, tokens=129_000))
        rows[-1].lap = rows[-2].lap = lap
    [_, burst] = figures_of(rows, [STREAM1, BURST], ["a"], None)
    assert burst.median == pytest.approx(2)


def test_a_spread_above_twenty_per_cent_is_no_result() -> None:
    mine = figure(rounds("a", 1.0, 1.0, 1.3))
    assert not mine.result
    assert mine.median == 1000
    assert "no result: the rounds spread by 30%" in mine.notes
    assert mine.ratio is None


def test_one_round_is_no_result() -> None:
    assert not figure(rounds("a", 1.0)).result
    assert figure(rounds("a", 1.0)).spread == 0


def test_rounds_that_do_not_count_are_told_and_left_out() -> None:
    rows = rounds("a", 1.0, 9.0, 1.1)
    rows[1].void, rows[1].problems = ["2 answers were wrong"], ["status 500"]
    mine = figure(rows)
    assert mine.values == pytest.approx([1000, 1100])
    assert mine.notes == ["round 2: 2 answers were wrong", "round 2: status 500"]
    for one in rows:
        one.void = ["no"]
    assert figure(rows).median is None


def test_a_token_of_a_burst_costs_what_a_longer_stream_costs_more() -> None:
    rows = [
        row(workload="stream1", cpu_s=0.1, tokens=1000),
        row(workload="burst", cpu_s=0.1 + 0.256, tokens=129_000),
    ]
    figures = figures_of(rows, [STREAM1, BURST], ["a"], None)
    assert [one.median for one in figures] == pytest.approx([100, 2])
    assert [one.unit for one in figures] == ["µs per request", "µs per token"]


def test_without_the_short_stream_a_burst_says_nothing() -> None:
    rows = [row(workload="burst", tokens=129_000)]
    assert figures_of(rows, [STREAM1, BURST], ["a"], None)[0].median is None


def idle(gateway: str, p50_ms: float, *, number: int = 0) -> Row:
    one = row(gateway, number=number, workload="idle")
    one.ttft_ms = Times(100, p50_ms, 2.0, 3.0)
    return one


def test_what_a_gateway_adds_to_the_first_token_is_without_the_engine_of_its_round() -> None:
    times = {ALONE: (0.2, 0.3), "a": (0.6, 0.75), "b": (1.2, 1.1)}
    rows = [
        idle(one, ms, number=at) for one, all_ms in times.items() for at, ms in enumerate(all_ms)
    ]
    mine, other = figures_of(rows, [WORKLOADS["idle"]], ["a", "b"], "b")
    assert mine.values == pytest.approx([0.4, 0.45])
    assert other.values == pytest.approx([1.0, 0.8])
    assert mine.ratio == pytest.approx((0.4 / 1.0 + 0.45 / 0.8) / 2)
    assert mine.notes == ["less 0.25 ms, which the engine alone takes"]


def test_where_nobody_asked_the_engine_alone_nothing_is_known_of_what_is_added() -> None:
    (mine,) = figures_of([idle("a", 0.6)], [WORKLOADS["idle"]], ["a"], None)
    assert mine.median is None
    assert mine.ttft_ms.p50 == 0.6
    assert mine.notes == ["nobody asked the engine alone, so what the gateway adds is not known"]


def test_a_pace_that_was_not_kept_is_told() -> None:
    one = row(workload="paced-64", tokens=10_000)
    one.tpot_ms = Times(64, 31.0, 33.0, 40.0)
    (figure_,) = figures_of([one], [paced(64)], ["a"], None)
    assert figure_.median == 100
    assert "the pace was not kept: a token every 31 ms" in figure_.notes


@given(st.lists(st.integers(0, 100_000).map(lambda ms: ms / 1000), min_size=1, max_size=200))
def test_percentiles_are_values_that_were_measured_in_order(values: list[float]) -> None:
    told = times_of(values)
    assert told.count == len(values)
    assert told.p50 <= told.p90 <= told.p99
    known = {round(value * 1000, 4) for value in values}
    assert {told.p50, told.p90, told.p99} <= known


def test_no_values_have_no_percentiles() -> None:
    assert times_of([]) == Times()


def test_the_table_shows_every_gateway_flags_what_is_no_result_and_names_the_weather() -> None:
    rows = [*rounds("a", 1.0, 1.1, 1.05), *rounds("b", 2.0, 2.0, 3.0)]
    figures = figures_of(rows, [SHORT], ["a", "b"], "b")
    facts = {
        "machine": {"cpu": "Z80", "cores": 2, "load_average": [1.5, 1.0, 0.5]},
        "rounds": 3,
        "duration_s": 4.0,
        "tokenizer": "built-in, 433 tokens",
        "gateways": [{"label": "a", "says": "ours", "version": "1.2", "arguments": "--x"}],
    }
    text = table(figures, [SHORT, BURST], base="b", facts=facts)
    assert "Z80" in text
    assert "load average 1.50, 1.00, 0.50" in text
    assert "built-in, 433 tokens" in text
    assert "a: ours, 1.2, --x" in text
    (a, b) = (line.split() for line in text.splitlines() if line.startswith(("  a ", "  b ")))
    assert a[1:4] == ["1,050", "10%", "0.50"]
    assert b[1:5] == ["2,000", "*", "50%", "1.00"]
    assert "burst" not in text
