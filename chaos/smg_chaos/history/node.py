"""Node with one store, in front of the one engine that all nodes of the benchmark share."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from smg_chaos.bench.children import Child, free_ports, spawn
from smg_chaos.bench.gateways.gateways import Gateway, ready
from smg_chaos.history.response_clients import MODEL

_READY_S: Final = 60.0


def start_engine(folder: Path) -> tuple[Child, int]:
    """Start an engine that gives every request the same short answer, at once; return it and its
    port.
    """
    (port,) = free_ports(1)
    command = [
        *(sys.executable, "-m", "smg_chaos.cli", "engine", "--server", "h2"),
        *("--contract", "vllm", "--model", MODEL, "--script", "fixed", "--port", str(port)),
        *("--itl-ms", "0", "--prefill-tokens-per-s", "0", "--slots", "4096"),
        *("--no-cache", "--events", "none"),
    ]
    return spawn("the engine", command, folder / "engine.log"), port


async def start_node(
    name: str,
    store: Sequence[str],
    engine: tuple[Child, int],
    folder: Path,
    clock_s: Callable[[], float],
) -> Gateway:
    """Start a node whose history is at `store` (its flags); BenchError if it does not start."""
    port, metrics_port = free_ports(2)
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-m", "smg_node"),
        *("--http", f"127.0.0.1:{port}", "--metrics", f"127.0.0.1:{metrics_port}"),
        *("--worker", f"grpc://127.0.0.1:{engine[1]}", "--data-dir", str(own / "data")),
        *("--drain.settle-s", "0", *store),
    ]
    child = spawn(name, command, own / "node.log")
    gateway = Gateway(name, "127.0.0.1", port, child.pid, child, "grpc", engine[0], MODEL)
    try:
        await ready(gateway, _READY_S, clock_s)
    except BaseException:
        await child.stop()
        raise
    return gateway
