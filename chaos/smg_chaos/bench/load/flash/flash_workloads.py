"""Workloads of flash crowds: streams that go on, streams of one token, and crowds beside running streams."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from smg_chaos.bench.load.job import Flow, Prompt
from smg_chaos.bench.load.script import Spoken
from smg_chaos.bench.load.workload import (
    ROUND,
    STEP_MS,
    STREAMS,
    Load,
    Workload,
    first_prompt,
    held_flow,
)
from smg_chaos.bench.options import FlashLoad

FLASH: Final = ("flash", "flash1", "flash-beside")
CROWD: Final = "crowd"
"""The flow of those that begin in one instant."""
_GOES_ON_TOKENS: Final = 50
"""A second of a stream."""
_GOES_ON: Final = (256,)
_ONE_TOKEN: Final = (1_000,)
_RUNNING: Final = 256


def flash_crowds(name: str, load: FlashLoad) -> list[Workload]:
    """Return the workloads of a name of `FLASH`, one for each size of a crowd."""
    sizes = load.sizes or (_GOES_ON if name == "flash" else _ONE_TOKEN)
    made = {"flash": _going_on, "flash1": _one_token, "flash-beside": _beside_running}[name]
    return [made(size, kept=load.kept) for size in sizes]


def _crowd(load: Load, script: Spoken | None, size: int, tokens: int, *, kept: bool) -> Flow:
    return Flow(
        name=CROWD,
        shape="flash",
        connections=size,
        tokens=tokens,
        stream=True,
        prompt=Prompt(kind="short", first=first_prompt(load) + ROUND // 2),
        text=None if script is None else script.text(tokens),
        kept=kept,
        # One instant is that of one process.
        process=0,
    )


def _going_on(size: int, *, kept: bool) -> Workload:
    """Return the workload of so many paced streams that begin in one instant, and last for a second."""

    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        return [_crowd(load, script, size, _GOES_ON_TOKENS, kept=kept)]

    says = f"p99 of the time to the first token of {size:,} streams that begin in one instant, then a token every {STEP_MS} ms"
    return Workload(
        f"flash-{size}", says, "first token", flows, paced=True, first=CROWD, crowd=CROWD
    )


def _one_token(size: int, *, kept: bool) -> Workload:
    """Return the workload of so many streams of one token that begin in one instant."""

    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        return [_crowd(load, script, size, 1, kept=kept)]

    says = f"p99 of the time to the first token of {size:,} streams of one token that begin in one instant"
    return Workload(f"flash1-{size}", says, "first token", flows, first=CROWD, crowd=CROWD)


def _beside_running(size: int, *, kept: bool) -> Workload:
    """Return the workload of running streams whose gaps are asked about, beside crowds of one token."""

    def flows(load: Load, script: Spoken | None) -> Sequence[Flow]:
        running = held_flow(load, script, _RUNNING, STREAMS)
        crowd = replace(_crowd(load, script, size, 1, kept=kept), process=1)
        return [replace(running, gaps=True, process=0), crowd]

    says = (
        f"p99 of the gaps between tokens of {_RUNNING} streams, one every {STEP_MS} ms in each,"
        f" beside {size:,} streams of one token that begin in one instant"
    )
    return Workload(
        f"flash-beside-{size}",
        says,
        "gap",
        flows,
        paced=True,
        first=CROWD,
        crowd=CROWD,
        clients_min=2,
    )
