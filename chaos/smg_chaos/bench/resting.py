"""Resting nodes (`smg-chaos resting`): what real nodes of one cluster cost that have nothing to do.

Clusters of some sizes are formed one after the other on this machine, and looked at for a while without requests or
events: CPU by the scheduler's nanoseconds, wake-ups as voluntary context switches of all threads, datagrams by the
nodes' own counters, memory (PSS). A node starts when the ones before it are ready, so that starting is measured too.
"""

import asyncio
import base64
import random
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Final

import msgspec
import typer

from smg_chaos.bench.children import BenchError, Child, fetch, free_ports, spawn
from smg_chaos.bench.figures.process_accounting import (
    memory_of,
    tree_cpu_s,
    tree_scheduled_s,
    tree_switches,
)

_READY_S: Final = 180.0
_MB: Final = 1024 * 1024
_SIZES: Final = (3, 10)
_DATAGRAMS: Final = re.compile(
    rb'^smg_node_mesh_datagram(s|_bytes)_total\{[^}]*direction="out"[^}]*\} ([0-9.e+]+)$', re.M
)


@dataclass(frozen=True, slots=True)
class _Node:
    """One node that runs."""

    child: Child
    port: int
    metrics_port: int


@dataclass(frozen=True, slots=True)
class _Look:
    """Counters of all nodes at one moment, by node."""

    at_s: float
    cpu_s: Sequence[float]
    switches: Sequence[int]


class _Members(msgspec.Struct):
    members: list[dict[str, object]]


_members: Final = msgspec.json.Decoder(_Members)


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What a node of a cluster at rest cost, on average of all of them."""

    nodes: int
    seconds: float
    cpu_percent: float
    """Of one core."""
    cpu_percent_max: float
    """That of the node with the most."""
    wake_ups_per_s: float
    datagrams_per_s: float
    """Sent."""
    bytes_per_s: float
    """Sent, without headers of IP and UDP."""
    pss_mb: float
    start_cpu_s: float
    """CPU seconds from the start until it was ready."""


async def measured(
    count: int,
    folder: Path,
    clock_s: Callable[[], float],
    *,
    seconds: float,
    settle_s: float,
    flags: Sequence[str] = (),
) -> Rest:
    """Return what a node costs in a cluster of so many at rest; BenchError if it does not form."""
    async with AsyncExitStack() as stack:
        nodes, start_cpu_s = await _formed(count, folder, clock_s, stack, flags)
        await asyncio.sleep(settle_s)
        packets, octets = await _sent(nodes)
        before = _look(nodes, clock_s)
        await asyncio.sleep(seconds)
        after = _look(nodes, clock_s)
        if said := next((said for node in nodes if (said := node.child.died())), ""):
            raise BenchError(said)
        more_packets, more_octets = await _sent(nodes)
        span_s = after.at_s - before.at_s
        pairs = zip(before.cpu_s, after.cpu_s, strict=True)
        cpu = [(end_s - begin_s) / span_s * 100 for begin_s, end_s in pairs]
        return Rest(
            nodes=count,
            seconds=span_s,
            cpu_percent=fmean(cpu),
            cpu_percent_max=max(cpu),
            wake_ups_per_s=(sum(after.switches) - sum(before.switches)) / span_s / count,
            datagrams_per_s=(more_packets - packets) / span_s / count,
            bytes_per_s=(more_octets - octets) / span_s / count,
            pss_mb=fmean(memory_of(node.child.pid).pss for node in nodes) / _MB,
            start_cpu_s=start_cpu_s,
        )


async def _formed(
    count: int,
    folder: Path,
    clock_s: Callable[[], float],
    stack: AsyncExitStack,
    flags: Sequence[str],
) -> tuple[Sequence[_Node], float]:
    """Start so many nodes, each when the one before it is ready; return them and what a start took."""
    key = _written_key(folder)
    ports = free_ports(3 * count)
    nodes: list[_Node] = []
    start_cpu_s: list[float] = []
    for number in range(count):
        port, metrics_port, mesh_port = ports[3 * number : 3 * number + 3]
        command = [
            *(sys.executable, "-m", "smg_node", "--name", f"n{number}"),
            *("--http", f"127.0.0.1:{port}", "--metrics", f"127.0.0.1:{metrics_port}"),
            *("--mesh", f"127.0.0.1:{mesh_port}", "--mesh-key", str(key)),
            *("--data-dir", str(folder / f"n{number}"), "--drain.settle-s", "0"),
            *("--readiness.min-workers", "0", "--telemetry.access-log", "false"),
            *(("--join", f"127.0.0.1:{ports[2]}") if number else ()),
            *flags,
        ]
        child = spawn(f"node n{number}", command, folder / f"n{number}.log")
        stack.push_async_callback(child.stop)
        nodes.append(_Node(child, port, metrics_port))
        await _until(nodes[-1], clock_s, number + 1)
        start_cpu_s.append(tree_cpu_s(child.pid))
    for node in nodes:
        await _until(node, clock_s, count)
    return nodes, fmean(start_cpu_s)


def _written_key(folder: Path) -> Path:
    folder.mkdir(parents=True)
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(base64.b64encode(random.SystemRandom().randbytes(32)) + b"\n")
    return key


async def _until(node: _Node, clock_s: Callable[[], float], count: int) -> None:
    """Wait until a node is ready and knows so many members as alive; BenchError if it does not come to that."""
    end_s = clock_s() + _READY_S
    while clock_s() < end_s:
        if said := node.child.died():
            raise BenchError(said)
        with suppress(OSError):
            status, _ = await fetch("127.0.0.1", node.port, "GET", "/readiness")
            if status == 200 and await _alive(node) == count:
                return
        await asyncio.sleep(0.25)
    words = node.child.last_words()
    raise BenchError(
        f"{node.child.name} is not one of {count} members after {_READY_S:.0f} s\n{words}"
    )


async def _alive(node: _Node) -> int:
    _, body = await fetch("127.0.0.1", node.port, "GET", "/v1/cluster/members?state=alive")
    try:
        return len(_members.decode(body).members)
    except msgspec.DecodeError as error:
        raise BenchError(f"{node.child.name} answers {body[:200]!r}: {error}") from error


def _look(nodes: Sequence[_Node], clock_s: Callable[[], float]) -> _Look:
    pids = [node.child.pid for node in nodes]
    at_s = clock_s()
    return _Look(
        at_s, [tree_scheduled_s(pid) for pid in pids], [tree_switches(pid) for pid in pids]
    )


async def _sent(nodes: Sequence[_Node]) -> tuple[float, float]:
    """Return how many datagrams and bytes all nodes have sent so far."""
    packets = octets = 0.0
    for node in nodes:
        _, page = await fetch("127.0.0.1", node.metrics_port, "GET", "/metrics")
        found = {kind: float(value) for kind, value in _DATAGRAMS.findall(page)}
        if len(found) != 2:
            raise BenchError(f"{node.child.name} does not tell how many datagrams it has sent")
        packets += found[b"s"]
        octets += found[b"_bytes"]
    return packets, octets


def table(found: Sequence[Rest]) -> str:
    """Return a line for each cluster."""
    lines = [
        f"{'nodes':>5}  {'CPU':>7}  {'most':>7}  {'wake-ups':>8}  {'packets':>7}  {'sent':>7}"
        f"  {'PSS':>8}  start"
    ]
    lines += [
        f"{rest.nodes:>5}  {rest.cpu_percent:>5.3f} %  {rest.cpu_percent_max:>5.3f} %"
        f"  {rest.wake_ups_per_s:>6.1f}/s  {rest.datagrams_per_s:>5.1f}/s  {rest.bytes_per_s:>3.0f} B/s"
        f"  {rest.pss_mb:>5.1f} MB  {rest.start_cpu_s:.2f} s"
        for rest in found
    ]
    return "\n".join(lines)


def resting(
    nodes: Annotated[
        list[int] | None,
        typer.Option(help="nodes of a cluster (3 10); repeat it", min=1, max=500),
    ] = None,
    seconds: Annotated[float, typer.Option(help="seconds that count", min=1, max=3600)] = 30.0,
    settle_s: Annotated[float, typer.Option(help="seconds before them", min=0, max=3600)] = 60.0,
    flag: Annotated[list[str] | None, typer.Option(help="a flag for every node; repeat it")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="write the figures to this file too")
    ] = None,
) -> None:
    """Measure what nodes of a cluster cost that have nothing to do: CPU, wake-ups, packets, memory. Linux only.

    CPU and wake-ups are those of a node, of one core; `start` is the CPU from the start of a node until it is ready.
    """
    from smg_node.system_clock import SystemClock

    clock_s = SystemClock().monotonic_s
    found: list[Rest] = []
    try:
        with tempfile.TemporaryDirectory(prefix="smg-resting-") as folder:
            for number, count in enumerate(nodes or _SIZES):
                own = Path(folder) / str(number)
                work = measured(
                    count,
                    own,
                    clock_s,
                    seconds=seconds,
                    settle_s=settle_s,
                    flags=[word for one in flag or () for word in shlex.split(one)],
                )
                found.append(asyncio.run(work))
    except (BenchError, OSError) as error:
        print(f"smg-chaos resting: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(table(found))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")


app = typer.Typer(add_completion=False)
app.command(name="resting")(resting)
