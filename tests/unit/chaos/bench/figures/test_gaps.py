"""Lines about gaps between tokens: rounds that count, the ratio to those without runs, and what a run costs."""

from smg_chaos.bench.figures.gaps import add_gap_notes
from smg_chaos.bench.figures.rows import Figure, Row, Times, figures_of, void_reasons
from smg_chaos.bench.figures.table import table
from smg_chaos.bench.load.tools.tool_runs import RUNS
from smg_chaos.bench.load.tools.tool_workloads import tools
from smg_chaos.bench.options import ToolLoad

ALONE, BESIDE = tools(ToolLoad(streams=(5,)))


def row(workload: str, number: int, p99_ms: float, *, cpu_s: float = 1.0, runs: int = 0) -> Row:
    return Row(
        workload=workload,
        gateway="a",
        round=number,
        seconds=4.0,
        requests=5,
        tokens=200,
        gateway_cpu_s=cpu_s,
        engine_cpu_s=0.5,
        client_cpu_s=[0.25, 0.1],
        gap_ms=Times(200, 100.0, 101.0, p99_ms),
        latency_ms=Times(runs, 20.0, 25.0, 30.0),
        flows={RUNS: runs} if runs else {},
    )


def figures(rows: list[Row]) -> list[Figure]:
    found = figures_of(rows, [ALONE, BESIDE], ["a"], None)
    add_gap_notes(found, rows, [ALONE, BESIDE])
    return found


def three_rounds() -> list[Row]:
    rows = []
    for number, (without, beside) in enumerate(((102.0, 104.0), (101.0, 106.0), (103.0, 108.15))):
        rows += [
            row(ALONE.name, number, without),
            row(BESIDE.name, number, beside, cpu_s=2.0, runs=200),
        ]
    return rows


def test_the_p99_of_the_gaps_is_what_is_told_and_compared() -> None:
    alone, beside = figures(three_rounds())
    assert (alone.median, beside.median) == (102.0, 106.0)
    assert (alone.unit, alone.result) == ("ms", True)
    assert alone.notes == [
        "round 1: gap p50 100.0, p99 102.0 ms",
        "round 2: gap p50 100.0, p99 101.0 ms",
        "round 3: gap p50 100.0, p99 103.0 ms",
    ]
    assert beside.notes[3:] == [
        "p99 is 1.039 of that without runs (1.1 at most is aimed at); round by round 1.020 to 1.050",
        "50.0 of 50 runs a second, which took p50 20, p99 30 ms",
        "CPU of a run: 5.0 ms; of all: 50% of a core",
    ]
    text = table([alone, beside], [ALONE, BESIDE], base=None, facts={})
    assert "beside 50 runs a second whose results are 65,536 bytes; ms\n" in text
    assert "a: CPU of a run: 5.0 ms" in text


def test_rounds_that_are_void_are_not_compared() -> None:
    rows = three_rounds()
    rows[1].void = rows[5].void = ["a client used 90% of a core"]
    _, beside = figures(rows)
    assert beside.values == [106.0]
    assert any("p99 is 1.039" in note and "1.050 to 1.050" in note for note in beside.notes)
    for one in rows:
        one.void = ["nothing was answered"]
    alone, beside = figures(rows)
    assert beside.median is None
    assert not any("p99" in note for note in (*alone.notes, *beside.notes))


def test_a_server_of_tools_may_be_the_bottleneck() -> None:
    one = row(BESIDE.name, 0, 104.0, cpu_s=3.9, runs=200)
    one.others_cpu_s = {"the server of tools": 3.5, "the engine that calls tools": 0.5}
    assert void_reasons(one, has_cpu=True, cores=4) == ["the server of tools used 88% of a core"]


def test_a_round_in_which_no_run_ended_says_nothing_of_runs() -> None:
    one = row(BESIDE.name, 0, 104.0)
    one.flows = {"main": 5, RUNS: 0}
    assert void_reasons(one, has_cpu=True, cores=4) == ["no run of tools ended"]
    one.flows[RUNS] = 1
    assert not void_reasons(one, has_cpu=True, cores=4)
