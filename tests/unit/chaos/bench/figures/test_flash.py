"""Lines about flash crowds."""

from smg_chaos.bench.figures.flash import add_flash_notes
from smg_chaos.bench.figures.rows import Figure, Row, Times, figures_of
from smg_chaos.bench.load.flash.flash_workloads import flash_crowds
from smg_chaos.bench.load.workloads import WORKLOADS
from smg_chaos.bench.options import FlashLoad

(ONE,) = flash_crowds("flash1", FlashLoad())
(GOES_ON,) = flash_crowds("flash", FlashLoad())


def row(workload: str, number: int, p99_ms: float, **more: object) -> Row:
    return Row(
        workload=workload,
        gateway="a",
        round=number,
        seconds=4.0,
        requests=5000,
        tokens=5000,
        gateway_cpu_s=1.5,
        engine_cpu_s=0.5,
        client_cpu_s=[0.25, 0.4],
        ttft_ms=Times(5000, 40.0, 60.0, p99_ms),
        asking_ms=Times(5000, 9.0, 15.0, 20.0),
        crowds=5,
        **more,  # type: ignore[arg-type]  # what a test says
    )


def figures(rows: list[Row]) -> list[Figure]:
    workloads = [ONE, GOES_ON, WORKLOADS["short"]]
    found = figures_of(rows, workloads, ["a"], None)
    add_flash_notes(found, rows, workloads)
    return found


def test_a_figure_of_crowds_is_the_p99_of_the_first_token_and_tells_the_clients_part() -> None:
    (figure,) = figures([row(ONE.name, 0, 80.0), row(ONE.name, 1, 84.0)])
    assert (figure.median, figure.unit, figure.result) == (82.0, "ms", True)
    assert figure.notes == [
        "round 1: 5 crowds, first token p50 40.0, p90 60.0, p99 80.0 ms; the last request had left the client"
        " after 20.0 ms, client 10% of a core",
        "round 2: 5 crowds, first token p50 40.0, p90 60.0, p99 84.0 ms; the last request had left the client"
        " after 20.0 ms, client 10% of a core",
        "CPU of a stream, from beginning to end: 300 µs",
    ]


def test_what_a_stream_costs_is_not_told_where_it_has_many_tokens_nor_void_rows() -> None:
    first, second = figures([row(ONE.name, 0, 80.0, void=["why"]), row(GOES_ON.name, 0, 84.0)])
    assert first.notes == ["round 1: why"]
    assert [note.partition(",")[0] for note in second.notes] == [
        "no result: only one round counts",
        "round 1: 5 crowds",
    ]


def test_other_figures_have_no_such_lines() -> None:
    assert figures([row("short", 0, 1.0), row("short", 1, 1.0)])[0].notes == []
