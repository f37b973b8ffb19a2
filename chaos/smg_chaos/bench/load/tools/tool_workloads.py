"""Workloads of tools: paced streams, without and with runs of tools beside them."""

from collections.abc import Sequence

from msgspec.structs import replace

from smg_chaos.bench.load.job import Flow
from smg_chaos.bench.load.script import Spoken
from smg_chaos.bench.load.tools.tool_runs import RUNS, run_flow
from smg_chaos.bench.load.workload import (
    ROUND,
    STREAMS,
    Load,
    Workload,
    first_prompt,
    held_flow,
)
from smg_chaos.bench.options import ToolLoad


def tools(load: ToolLoad) -> tuple[Workload, ...]:
    """Return the workloads of paced streams, without and with runs of tools beside them, for each number of streams."""
    found: list[Workload] = []
    for streams in load.streams:
        name = f"tools-{streams}"
        what = f"p99 of the gaps between tokens of {streams} streams, one every {load.step_ms} ms in each"
        runs = f"{load.runs_per_s:g} runs a second whose results are {load.result_bytes:,} bytes"
        found += [
            _beside_runs(f"{name}-alone", what, load, streams, runs=False),
            _beside_runs(name, f"{what}, beside {runs}", load, streams, runs=True),
        ]
    return tuple(found)


def first_runs(load: ToolLoad) -> Workload:
    """Return the workload of runs alone, for before anything counts."""

    def flows(given: Load, script: Spoken | None) -> Sequence[Flow]:
        return [run_flow(load, first_prompt(given))]

    return Workload("tools-first", "run of a tool", "request", flows, first=RUNS, behind="tools")


def _beside_runs(name: str, says: str, load: ToolLoad, streams: int, *, runs: bool) -> Workload:
    def flows(given: Load, script: Spoken | None) -> Sequence[Flow]:
        held = held_flow(given, script, streams, STREAMS, step_ms=load.step_ms)
        alone = replace(held, gaps=True, process=0)
        if not runs:
            return [alone]
        beside = replace(
            run_flow(load, first_prompt(given) + ROUND // 2),
            shape="open",
            connections=64,
            rate_per_s=load.runs_per_s,
        )
        return [alone, beside]

    return Workload(
        name,
        says,
        "gap",
        flows,
        paced=True,
        first=RUNS if runs else STREAMS,
        behind="tools",
        step_ms=load.step_ms,
        beside=f"{name}-alone" if runs else "",
        companion=RUNS,
        runs_per_s=load.runs_per_s if runs else 0.0,
        clients_min=2,
    )
