import msgspec

from smg_chaos.bench.laps import whole_rounds
from smg_chaos.bench.rows import Row, Times


def lap(number: int, **changes: object) -> Row:
    row = Row(
        workload="short",
        gateway="smg",
        round=1,
        lap=number,
        seconds=2.0,
        requests=10,
        tokens=20,
        gateway_cpu_s=0.5,
        engine_cpu_s=0.1,
        client_cpu_s=[0.2, 0.3],
        ttft_ms=Times(10, 1.0, 2.0, 3.0),
        prompt_tokens=100.0,
        peak_mb=50.0 + number,
        pss_mb=40.0 + number,
        flows={"probes": 4, "streams": 6},
    )
    return msgspec.structs.replace(row, **changes)


def test_a_round_of_one_lap_is_that_lap() -> None:
    rows = [lap(0), lap(0, gateway="litellm")]
    assert whole_rounds(rows) == rows


def test_what_was_used_and_done_is_added_and_what_was_waited_is_weighed() -> None:
    more = lap(1, requests=30, tokens=60, gateway_cpu_s=1.1, ttft_ms=Times(30, 5.0, 6.0, 7.0))
    [row] = whole_rounds([lap(0), more])
    assert (row.seconds, row.requests, row.tokens, row.gateway_cpu_s) == (4.0, 40, 80, 1.6)
    assert (row.engine_cpu_s, row.client_cpu_s) == (0.2, [0.4, 0.6])
    assert row.request_us() == 40_000.0
    assert row.ttft_ms == Times(40, 4.0, 5.0, 6.0)
    assert (row.peak_mb, row.pss_mb, row.prompt_tokens) == (51.0, 41.0, 100.0)
    assert row.flows == {"probes": 8, "streams": 12}


def test_laps_are_of_their_own_round_workload_and_gateway() -> None:
    others = [lap(0, round=2), lap(0, workload="burst"), lap(0, gateway="litellm")]
    rows = whole_rounds(
        [lap(0), *others, lap(1), *(msgspec.structs.replace(one, lap=1) for one in others)]
    )
    assert [(row.round, row.workload, row.gateway) for row in rows] == [
        (1, "short", "smg"),
        (2, "short", "smg"),
        (1, "burst", "smg"),
        (1, "short", "litellm"),
    ]
    assert all(row.requests == 20 for row in rows)


def test_a_lap_that_does_not_count_is_left_out_and_told_of() -> None:
    [row] = whole_rounds([lap(0), lap(1, requests=999, void=["a client used 90% of a core"])])
    assert (row.requests, row.void) == (10, [])
    assert row.problems == ["lap 2: a client used 90% of a core"]


def test_a_round_without_a_lap_that_counts_does_not() -> None:
    [row] = whole_rounds([lap(0, void=["x"]), lap(1, void=["y"])])
    assert row.void == ["lap 1: x", "lap 2: y"]


def test_wrong_answers_of_any_lap_are_the_rounds() -> None:
    [row] = whole_rounds([lap(0), lap(1, errors=2, void=["2 answers were wrong"])])
    assert row.errors == 2
