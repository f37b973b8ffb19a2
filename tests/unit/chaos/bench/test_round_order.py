"""In which order a bench goes round gateways, and what it says a row is of."""

import asyncio
from pathlib import Path

import pytest
from rich.console import Console

from smg_chaos.bench.bench import Bench, Plan
from smg_chaos.bench.figures.measurement import Lengths
from smg_chaos.bench.figures.progress import Progress
from smg_chaos.bench.figures.rows import Row
from smg_chaos.bench.gateways.gateways import Gateway
from smg_chaos.bench.load.workload import Load, Workload
from smg_chaos.bench.load.workloads import chosen
from smg_chaos.bench.session import bundle_of


def gateway(label: str) -> Gateway:
    return Gateway(label, "127.0.0.1", 1, 0, None, "grpc", None)


def test_rounds_take_turns_with_their_laps_and_no_text_comes_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[int, str, float]] = []

    async def measure(
        _: Bench, workload: Workload, one: Gateway, load: Load, lengths: Lengths
    ) -> Row:
        asked.append((load.round, one.label, lengths.counts_s(workload)))
        return Row(workload=workload.name, gateway=one.label, round=load.round)

    monkeypatch.setattr(Bench, "_measure", measure)
    plan = Plan(
        workloads=chosen(["short"], []),
        gateways=[],
        folder=tmp_path,
        peers=tmp_path,
        bundle=bundle_of(None),
        rounds=2,
        laps=3,
        lengths=Lengths(1.0, 6.0),
    )
    told: list[Row] = []
    bench = Bench(plan, Progress(Console(quiet=True)), lambda: 0.0, told.append)
    asyncio.run(bench._rounds(plan.workloads, [gateway("a"), gateway("b")]))
    assert told == bench.rows
    assert [(row.round, row.lap, row.gateway) for row in bench.rows] == [
        (0, 0, "a"),
        (0, 0, "b"),
        (1, 0, "b"),
        (1, 0, "a"),
        (0, 1, "b"),
        (0, 1, "a"),
        (1, 1, "a"),
        (1, 1, "b"),
        (0, 2, "a"),
        (0, 2, "b"),
        (1, 2, "b"),
        (1, 2, "a"),
    ]
    assert [number for number, _, _ in asked] == [0, 0, 1, 1, 3, 3, 2, 2, 4, 4, 5, 5]
    assert {seconds for _, _, seconds in asked} == {2.0}
