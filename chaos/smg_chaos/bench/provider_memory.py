"""Memory of vendors' definitions (`smg-chaos provider-memory`): that of an idle node by its number of providers.

A node at a time is started in front of a stand-in of Anthropic's API, ready when all models of all providers are, and
looked at when it has come to rest. Rounds are interleaved. What the first provider brings (the web framework, the code
for vendors) is told apart from what each further one takes.
"""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from smg_chaos.bench.children import BenchError, Child, fetch, free_ports, spawn
from smg_chaos.bench.figures.process_accounting import memory_of
from smg_chaos.bench.gateways.engines import VENDOR_KEY, listening

_READY_S: Final = 120.0
_REST_S: Final = 1.5
"""What a node still does after it said that it is ready: it lists models, and looks at its workers once."""
_MB: Final = 1024 * 1024
_COUNTS: Final = (0, 1, 50)
_MODELS: Final = 5


def definitions(providers: int, models: int, port: int) -> dict[str, Any]:
    """Return so many providers with so many models each, and a route over each model of all of them."""
    names = [f"account-{number}" for number in range(providers)]
    base = f"http://127.0.0.1:{port}"
    served = [f"claude-model-{number}" for number in range(models)]
    one = {
        "kind": "anthropic",
        "base": base,
        "keys": [VENDOR_KEY],
        "models": [{"model": model} for model in served],
    }
    routes = {
        f"model-{number}": {"targets": [f"{name}/{model}" for name in names]}
        for number, model in enumerate(served)
    }
    return {"providers": dict.fromkeys(names, one), "routes": routes}


async def measured(
    counts: Sequence[int],
    folder: Path,
    clock_s: Callable[[], float],
    *,
    models: int = _MODELS,
    rounds: int = 1,
) -> Mapping[int, Sequence[float]]:
    """Return the PSS in MB of a node with each number of providers, of each round; BenchError if one does not start."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "smg_chaos.cli", "vendor", "--kind", "anthropic"]
    command += ["--port", str(port), "--model", "*"]
    vendor = spawn("the vendor", command, folder / "vendor.log")
    found: dict[int, list[float]] = {count: [] for count in counts}
    try:
        await listening(vendor, clock_s)
        for number in range(rounds):
            for count in counts:
                own = folder / f"{count}-{number}"
                own.mkdir()
                said = definitions(count, models, port)
                found[count].append(await _pss_mb(said, count * models, own, clock_s))
    finally:
        await vendor.stop()
    return found


async def _pss_mb(
    said: Mapping[str, Any], targets: int, folder: Path, clock_s: Callable[[], float]
) -> float:
    port, metrics_port = free_ports(2)
    command = [
        *(sys.executable, "-m", "smg_node", "--http", f"127.0.0.1:{port}"),
        *("--metrics", f"127.0.0.1:{metrics_port}", "--data-dir", str(folder / "node")),
        *("--readiness.min-workers", str(targets), "--drain.settle-s", "0"),
    ]
    if targets:
        path = folder / "providers.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(said))
        command += ["--providers", str(path)]
    node = spawn("smg-node", command, folder / "node.log")
    try:
        await _ready(node, port, clock_s)
        await asyncio.sleep(_REST_S)
        return memory_of(node.pid).pss / _MB
    finally:
        await node.stop()


async def _ready(node: Child, port: int, clock_s: Callable[[], float]) -> None:
    end_s = clock_s() + _READY_S
    while clock_s() < end_s:
        if said := node.died():
            raise BenchError(said)
        with suppress(OSError):
            status, _ = await fetch("127.0.0.1", port, "GET", "/readiness")
            if status == 200:
                return
        await asyncio.sleep(0.2)
    raise BenchError(f"smg-node is not ready after {_READY_S:.0f} s\n{node.last_words()}")


def table(found: Mapping[int, Sequence[float]], models: int) -> str:
    """Return a line for each number of providers: median, spread, and what it is beyond those before it."""
    lines = [f"{'providers':>9}  {'models':>6}  {'PSS MB':>7}  {'spread':>6}  beyond"]
    medians = {count: statistics.median(values) for count, values in found.items()}
    for count, median in medians.items():
        spread = (max(found[count]) - min(found[count])) / median
        beyond = [
            f"{median - less:+.1f} MB to {other}"
            for other, less in medians.items()
            if other < count
        ]
        line = f"{count:>9}  {count * models:>6}  {median:>7.1f}  {spread:>6.0%}  "
        lines.append((line + ", ".join(beyond)).rstrip())
    return "\n".join(lines)


def provider_memory(
    providers: Annotated[
        list[int] | None,
        typer.Option(help="providers of a node (0 1 50); repeat it", min=0, max=1000),
    ] = None,
    models: Annotated[int, typer.Option(help="models of each", min=1, max=100)] = _MODELS,
    rounds: Annotated[int, typer.Option(help="rounds, interleaved", min=1, max=100)] = 3,
) -> None:
    """Measure the memory of an idle node by its number of providers. Linux only."""
    from smg_node.system_clock import SystemClock

    counts = sorted(set(providers or _COUNTS))
    clock_s = SystemClock().monotonic_s
    try:
        with tempfile.TemporaryDirectory(prefix="smg-provider-memory-") as folder:
            work = measured(counts, Path(folder), clock_s, models=models, rounds=rounds)
            found = asyncio.run(work)
    except (BenchError, OSError) as error:
        print(f"smg-chaos provider-memory: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(table(found, models))


app = typer.Typer(add_completion=False)
app.command(name="provider-memory")(provider_memory)
