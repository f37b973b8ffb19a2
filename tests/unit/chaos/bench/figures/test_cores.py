from datetime import UTC, datetime

from smg_chaos.bench.compare_page import Page, page
from smg_chaos.bench.figures.cores import cores_gateways, cores_lines, cores_workloads
from smg_chaos.bench.figures.rows import Row, Times

WORKLOADS = cores_workloads()
LOOP, CROWD, BESIDE = (one.name for one in WORKLOADS)


def row(workload: str, gateway: str, number: int, **more: object) -> Row:
    fields: dict[str, object] = {"seconds": 4.0, "requests": 2_000, "gateway_cpu_s": 1.0} | more
    return Row(workload=workload, gateway=gateway, round=number, **fields)  # type: ignore[arg-type]  # fields of a row


def test_each_number_of_processes_and_the_reference_are_measured_under_the_same_loads() -> None:
    wanted = cores_gateways((1, 4), ("--x",), ["smg"])
    assert [one.label for one in wanted] == ["processes-1", "processes-4", "smg"]
    assert wanted[1].arguments == ("--x", "--processes", "4")
    assert wanted[2].arguments == ()
    assert [one.unit for one in WORKLOADS] == ["request", "first token", "gap"]


def test_a_line_is_the_median_of_the_rounds_that_count() -> None:
    rows = [
        row(LOOP, "processes-4", 0, pss_mb=300.0),
        row(LOOP, "processes-4", 1, requests=4_000, pss_mb=310.0),
        row(LOOP, "processes-4", 2, requests=8_000, void=["the client was the bottleneck"], pss_mb=320.0),
        row(CROWD, "smg", 0, ttft_ms=Times(256, 10.0, 20.0, 30.0)),
        row(CROWD, "smg", 1, ttft_ms=Times(256, 12.0, 22.0, 34.0)),
        row(BESIDE, "smg", 0, gap_ms=Times(9_000, 20.0, 22.0, 41.5), ttft_ms=Times(1_000, 1.0, 2.0, 3.0)),
    ]  # fmt: skip
    lines = cores_lines(rows, WORKLOADS, ["processes-4", "smg"])
    assert [(one.workload, one.gateway) for one in lines] == [
        (LOOP, "processes-4"), (CROWD, "smg"), (BESIDE, "smg")
    ]  # fmt: skip
    loop, crowd, beside = lines
    assert (loop.requests_per_s, loop.request_us, loop.rounds) == (750.0, 375.0, 2)
    assert (loop.pss_mb, loop.why) == (320.0, "the client was the bottleneck")
    assert loop.first_ms.count == 0
    assert (crowd.first_ms.p50, crowd.first_ms.p99, crowd.requests_per_s) == (11.0, 32.0, None)
    assert (beside.gap_ms.p99, beside.request_us) == (41.5, None)


def test_what_never_counted_has_no_figures_and_says_why() -> None:
    rows = [row(LOOP, "smg", 0, void=["2 answers were wrong"])]
    (line,) = cores_lines(rows, WORKLOADS, ["smg"])
    assert (line.rounds, line.requests_per_s, line.request_us) == (0, None, None)
    assert line.why == "2 answers were wrong"


def test_the_page_has_the_table_and_says_who_was_pinned_where() -> None:
    rows = [
        row(LOOP, "smg", 0, pss_mb=130.4),
        row(CROWD, "smg", 0, ttft_ms=Times(9, 1.0, 2.0, 3.0)),
    ]
    lines = cores_lines(rows, WORKLOADS, ["smg"])
    text = page(
        Page(datetime(2026, 11, 29, tzinfo=UTC), {"pinning": "gateway: 0-3"}, [], (), lines)
    )
    assert "| Pinning | gateway: 0-3 |" in text
    assert "## Goals" not in text
    assert f"| {LOOP} | smg | 500 | 500 | - | - | 130 | 1 | - |\n" in text
    assert f"| {CROWD} | smg | - | - | 1.00, 3.00 | - | 0 | 1 | - |\n" in text
