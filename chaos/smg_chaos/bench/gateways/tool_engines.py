"""Tool engines: a second engine, and a server of tools, beside an engine where models call tools.

Where pictures are for another model than streams, the second engine is the pictures' own.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smg_chaos.bench.children import BenchError, Child, spawn
from smg_chaos.bench.gateways.engines import (
    EngineChoice,
    listening,
    start_caller,
    start_seer,
)
from smg_chaos.bench.load.script import Script
from smg_chaos.bench.load.tools.tool_runs import CALLER, SEER
from smg_chaos.engine.scripts.calls_once import NUMBER

_URL: Final = re.compile(rb"url=(\S+)")


@dataclass(frozen=True, slots=True)
class Beside:
    """The second engine's port, the server's URL ("" where no tools are called), and their processes."""

    engine_port: int
    server_url: str
    children: Sequence[Child]


async def start_beside(
    choice: EngineChoice,
    folder: Path,
    clock_s: Callable[[], float],
    *,
    result_bytes: int,
    started: Callable[[Child], None],
) -> Beside:
    """Start both, and return when they listen; each is told of as soon as it runs. BenchError if one does not."""
    call = f'big {{"bytes": {result_bytes}, "number": {NUMBER}}}'
    caller, port = start_caller(choice, folder, model=CALLER, calls=call)
    started(caller)
    command = [sys.executable, "-m", "smg_chaos.cli", "mcp-server", "--era", "modern"]
    server = spawn("the server of tools", command, folder / "mcp-server.log")
    started(server)
    for child in (caller, server):
        await listening(child, clock_s)
    found = _URL.search(server.log.read_bytes())
    if found is None:
        raise BenchError(f"the server of tools does not say where it is\n{server.last_words()}")
    return Beside(port, found[1].decode(), (caller, server))


async def start_seer_beside(
    choice: EngineChoice,
    script: Script,
    folder: Path,
    clock_s: Callable[[], float],
    *,
    started: Callable[[Child], None],
) -> Beside:
    """Start the engine of the model that sees pictures, and return when it listens; as `start_beside`."""
    seer, port = start_seer(choice, script, folder, model=SEER)
    started(seer)
    await listening(seer, clock_s)
    return Beside(port, "", (seer,))
