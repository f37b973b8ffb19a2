"""Live comparison: real gateways before simulated engines, in real time, with the same chats for
each.

The engines are processes of ours with the prefix cache and the timings of `engine_sizes`: blocks of
64 tokens, as many as fit beside the weights, prefill of one prompt after the other at its rate, a
step of 22 ms. They are started anew for each gateway and count themselves what was cached, so no
gateway's own figure is used.
"""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from smg_chaos.bench.children import BenchError, Child, spawn
from smg_chaos.bench.gateways.engines import MODEL, listening
from smg_chaos.bench.gateways.gateways import Gateway, Wanted, ready, start
from smg_chaos.gameday.clients.stream_client import Connect
from smg_chaos.routing.model.chat_texts import Heard, Session, talk
from smg_chaos.routing.model.engine_sizes import EngineSize
from smg_chaos.statistics import percentile
from smg_node.core.ports import Clock

_STEP_MS: Final = 22
_CONTEXT: Final = 65_536
_HEAD_BYTES_MAX: Final = 1 << 16
_SETTLE_S: Final = 3.0
"""Engines are found, and their events listened to, before anybody asks."""


@dataclass(frozen=True, slots=True)
class Row:
    """One gateway. `hits` is the share of prompt tokens that the engines found cached, by their own count."""

    gateway: str
    requests: int
    wrong: int
    hits: float
    ttft_mean_s: float
    ttft_p50_s: float
    ttft_p99_s: float
    busiest: float
    """Tokens made by the busiest engine over the mean."""


@dataclass(frozen=True, slots=True)
class Live:
    """Parameters of a run: number of engines, the chats, the duration."""

    engines: int
    chats: Sequence[Session]
    seconds: float
    folder: Path
    peers: Path
    clock: Clock
    server: str = "grpc"


async def tried(live: Live, wanted: Wanted) -> Row:
    """Run the chats through one gateway; BenchError if it, or the engines, do not start.

    SIGTERM ends it as Ctrl-C does, with everything stopped.
    """
    folder = live.folder / wanted.label
    folder.mkdir(parents=True, exist_ok=True)
    port = free_run(live.engines)
    report = folder / "report.json"
    engines = spawn("the engines", engine_command(live, port, report), folder / "engines.log")
    gateway: Gateway | None = None
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "a coroutine runs in a task"
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await _listening(engines, live)
        gateway = start(_before(wanted, port, live.engines), engines, port, folder, live.peers)
        await ready(gateway, 90.0, live.clock.monotonic_s)
        await asyncio.sleep(_SETTLE_S)
        heard = await _heard(live, gateway)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        if gateway is not None and gateway.child is not None:
            await gateway.child.stop()
        await engines.stop()
    return row_of(wanted.label, heard, json.loads(report.read_bytes()))


async def _listening(engines: Child, live: Live) -> None:
    await listening(engines, live.clock.monotonic_s)
    while engines.log.read_bytes().count(b"listening on") < live.engines:
        if said := engines.died():
            raise BenchError(said)
        await asyncio.sleep(0.05)


async def _heard(live: Live, gateway: Gateway) -> Heard:
    heard, now_s = Heard(), live.clock.monotonic_s
    begun_s = now_s()

    async def chat(session: Session) -> None:
        await asyncio.sleep(session.begins_s)
        end_s = begun_s + live.seconds
        await talk(session, _connect(gateway.port), MODEL, heard, now_s=now_s, end_s=end_s)

    async with asyncio.TaskGroup() as group:
        for session in live.chats:
            group.create_task(chat(session))
    return heard


def _connect(port: int) -> Connect:
    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", port, limit=_HEAD_BYTES_MAX)

    return connect


def row_of(label: str, heard: Heard, counted: Sequence[dict[str, Any]]) -> Row:
    """Return the row of a gateway from what clients received and the engines counted."""
    if not heard.ttft_s:
        raise BenchError(f"{label} answered nothing: {heard.wrong[:3]}")
    tokens = [one["tokens"] for one in counted]
    prompts = sum(one["prompt_tokens"] for one in counted)
    return Row(
        gateway=label,
        requests=len(heard.ttft_s),
        wrong=len(heard.wrong),
        hits=sum(one["cached_tokens"] for one in counted) / max(1, prompts),
        ttft_mean_s=fmean(heard.ttft_s),
        ttft_p50_s=percentile(heard.ttft_s, 0.5),
        ttft_p99_s=percentile(heard.ttft_s, 0.99),
        busiest=max(tokens) / max(1e-9, fmean(tokens)),
    )


def engine_command(live: Live, port: int, report: Path) -> list[str]:
    """Return how the engines are started, on ports from `port` on."""
    size = EngineSize()
    return [
        *(sys.executable, "-m", "smg_chaos.cli", "engine", "--server", live.server),
        *("--contract", "vllm", "--model", MODEL, "--script", "following"),
        *("--port", str(port), "--workers", str(live.engines), "--report", str(report)),
        *("--itl-ms", str(_STEP_MS), "--prefill-tokens-per-s", f"{size.prefill_rate:.0f}"),
        *("--slots", str(size.slots), "--context", str(_CONTEXT)),
        *("--blocks", str(size.blocks), "--block-size", str(size.block)),
    ]


def _before(wanted: Wanted, port: int, engines: int) -> Wanted:
    """Return the gateway with all engines as its workers; it has the first one already."""
    urls = [f"grpc://127.0.0.1:{port + number}" for number in range(engines)]
    if wanted.kind.peer:
        more = ["--worker-urls", *urls]
    else:
        more = [word for url in urls[1:] for word in ("--worker", url)]
    return Wanted(wanted.label, wanted.kind, [*wanted.arguments, *more])


def free_run(count: int) -> int:
    """Return the first of so many ports in a row on which nothing listened a moment ago."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first = int(probe.getsockname()[1])
        if first + count < 65_536 and all(map(_is_free, range(first, first + count))):
            return first
    raise BenchError(f"no {count} free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    head = ("gateway", "hits", "TTFT mean", "p50", "p99", "max/mean", "requests")
    lines = [
        (
            one.gateway,
            f"{100 * one.hits:.1f} %",
            *(f"{1000 * s:.0f} ms" for s in (one.ttft_mean_s, one.ttft_p50_s, one.ttft_p99_s)),
            f"{one.busiest:.2f}",
            f"{one.requests}" + (f" ({one.wrong} wrong)" if one.wrong else ""),
        )
        for one in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *lines)
    )


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON."""
    return [asdict(one) for one in rows]
