"""Command line of `smg-chaos crowd`: thousands of streams at once on one gateway."""

import asyncio
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

if TYPE_CHECKING:
    from smg_chaos.bench.crowd import Crowd, Found

_EPILOG: Final = """
Examples:

$ smg-chaos crowd --tokenizer .cache/vocabulary/qwen
(10,000 streams that say little and 1,000 that say much; about a minute and a half)

$ smg-chaos crowd --idle 1000 --active 100 --duration-s 5

$ smg-chaos crowd --processes 1 --active-step-ms 50
"""

_Idle = Annotated[int, typer.Option(help="streams that say little", min=0, max=200_000)]
_Active = Annotated[int, typer.Option(help="streams that say much", min=0, max=20_000)]
_IdleStepS = Annotated[
    float, typer.Option(help="seconds between tokens of the first", min=0.1, max=60)
]
_ActiveStepMs = Annotated[
    int, typer.Option(help="ms between tokens of the others", min=5, max=10_000)
]
_DurationS = Annotated[float, typer.Option(help="seconds that count", min=1, max=600)]
_StartsPerS = Annotated[float, typer.Option(help="streams opened a second", min=1, max=5_000)]
_Processes = Annotated[int, typer.Option(help="data processes; 0: all in one", min=0, max=64)]
_Equipped = Annotated[bool, typer.Option(help="with keys and limits, as it is operated")]
_Flags = Annotated[str, typer.Option(help="more flags of this gateway")]
_Tokenizer = Annotated[
    Path | None, typer.Option(help="folder with a real tokenizer", exists=True, file_okay=False)
]
_Out = Annotated[Path, typer.Option(help="folder for results and logs")]


def command(
    idle: _Idle = 10_000,
    active: _Active = 1_000,
    idle_step_s: _IdleStepS = 10.0,
    active_step_ms: _ActiveStepMs = 200,
    duration_s: _DurationS = 20.0,
    starts_per_s: _StartsPerS = 500.0,
    processes: _Processes = 0,
    equipped: _Equipped = True,
    flags: _Flags = "",
    tokenizer: _Tokenizer = None,
    out: _Out = Path(".cache/bench"),
) -> None:
    """Open thousands of streams at once, and see what they take and who has to wait.

    Every stream is read to its end and compared with what its engine said. Exits 0 if all were
    whole and neither engine nor client was the bottleneck, 1 if not.
    """
    from smg_chaos.bench.children import BenchError
    from smg_chaos.bench.crowd import Crowd, Wish
    from smg_chaos.bench.figures.process_accounting import AccountingError
    from smg_chaos.bench.session import bundle_of
    from smg_node.system_clock import SystemClock

    wish = Wish(
        idle=idle,
        active=active,
        idle_step_s=idle_step_s,
        active_step_s=active_step_ms / 1000,
        duration_s=duration_s,
        starts_per_s=starts_per_s,
        processes=processes,
        equipped=equipped,
        arguments=tuple(shlex.split(flags)),
    )
    clock = SystemClock()
    folder = out / f"crowd-{clock.now_ms()}"
    try:
        bundle = bundle_of(tokenizer)
        folder.mkdir(parents=True)
        crowd = Crowd(wish, folder, bundle, tokenizer, clock.monotonic_s, _say)
        found = _run(crowd)
    except (AccountingError, BenchError, OSError, ValueError) as error:
        print(f"smg-chaos crowd: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    (folder / "found.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    print(told(found))
    _say(f"what was found, and logs: {folder}")
    raise typer.Exit(int(bool(found.short())))


def _run(crowd: "Crowd") -> "Found":
    """Return what was found; SIGTERM ends it as Ctrl-C does, with everything stopped."""
    try:
        return asyncio.run(_until_told(crowd))
    except (KeyboardInterrupt, asyncio.CancelledError):
        _say("stopped")
        raise typer.Exit(130) from None
    finally:
        crowd.kill_rest()


async def _until_told(crowd: "Crowd") -> "Found":
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await crowd.run()


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def told(found: "Found") -> str:
    """Return the results, a line each."""
    per_token_us = found.gateway_cpu_s / found.tokens * 1e6 if found.tokens else 0.0
    lines = [
        f"streams            {found.idle:,} idle, {found.active:,} active; {found.open:,} open at once; {found.whole:,} whole",
        f"processes          {found.processes}",
        f"memory (PSS)       {found.steady_mb:.0f} MB, {found.base_mb:.0f} before: {found.stream_kb:.1f} KB a stream",
        f"memory at its peak {found.peak_mb:.0f} MB resident",
        f"open files         {found.files:,}",
        f"first token        p50 {found.probe_ms.p50:.1f}, p99 {found.probe_ms.p99:.1f} ms, of {found.probes:,} probes",
        f"longest gap        {found.active_gap_ms:.0f} ms active, {found.idle_gap_ms:.0f} ms idle",
        f"32 KB prompts      {found.documents / found.seconds:.0f} a second beside them",
        f"CPU                gateway {found.gateway_cpu_s / found.seconds:.0%} of a core ({per_token_us:.0f} µs per token,"
        f" prompts included), busier engine {found.engine_cpu_s / found.seconds:.0%},"
        f" client {found.client_cpu_s / found.seconds:.0%}",
    ]  # fmt: skip
    lines += [f"problem            {problem}" for problem in found.problems]
    lines += [f"SHORT              {reason}" for reason in found.short()]
    return "\n".join(lines)


app = typer.Typer(add_completion=False)
app.command(name="crowd", epilog=_EPILOG)(command)
