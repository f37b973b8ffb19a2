"""Instructions per request (`smg-chaos instructions`): counts the interpreter's bytecode
instructions by function.

CPU time spreads by a fifth from run to run; this number repeats to the percent, on a busy machine
as well. So it is the number to watch while the path of a request is made shorter, and one that a
test can assert.
"""

import asyncio
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from smg_chaos.bench.figures.counted_gateway import Counted
from smg_chaos.bench.gateways.gateways import EQUIPPED, KINDS, Place, Wanted

WARM: Final = 100
"""Requests before the first that counts: the interpreter has specialised what is hot by then, and all that is made once is made."""
COUNT: Final = 200
_CLIENTS: Final = 4
_SHOWN: Final = 40
_ROOTS: Final = ("/site-packages/", "/node/", "/mesh/", "/storage/", "/lib/python")


def counted(wanted: Wanted, path: Path, *, warm: int = WARM, count: int = COUNT) -> Wanted:
    """Return that gateway of this tree with the counts written to `path`."""
    kind = wanted.kind

    def command(place: Place) -> list[str]:
        interpreter, dash, module, *arguments = kind.command(place)
        assert (interpreter, dash, module) == (sys.executable, "-m", "smg_node")
        numbers = (str(path), str(warm), str(count))
        return [
            interpreter,
            "-m",
            "smg_chaos.bench.figures.counted_gateway",
            *numbers,
            "--",
            *arguments,
        ]

    return replace(wanted, kind=replace(kind, command=command))


def told(found: Counted, shown: int = _SHOWN) -> str:
    """Return a table: instructions and calls of one request, in all, by file, and by function."""
    files: Counter[str] = Counter()
    for one in found.functions:
        files[_short(one.file)] += one.instructions
    calls = sum(one.calls for one in found.functions)
    lines = [
        f"{sum(files.values()) / found.requests:8.0f} instructions in {calls / found.requests:.0f} calls,"
        f" mean of {found.requests} requests",
        "",
        *(f"{number / found.requests:8.1f} {name}" for name, number in files.most_common(shown)),
        "",
    ]
    for one in found.functions[:shown]:
        each, times = one.instructions / found.requests, one.calls / found.requests
        lines.append(f"{each:8.1f} {times:5.1f} {_short(one.file)}:{one.line} {one.name}")
    return "\n".join(lines)


def _short(file: str) -> str:
    for root in _ROOTS:
        _, found, rest = file.rpartition(root)
        if found:
            return rest
    return file


_WORKLOADS: Final = ("short", "stream1", "messages-short", "messages-stream1")
_Workload = Annotated[str, typer.Option("--workload", "-w", help=" or ".join(_WORKLOADS))]
_Tokenizer = Annotated[
    Path | None,
    typer.Option(help="folder with a real tokenizer", exists=True, file_okay=False),
]
_Out = Annotated[Path, typer.Option(help="folder for results and logs")]
_Equipped = Annotated[
    bool, typer.Option("--equipped", help="with a key to show and limits to stay below")
]
_Shown = Annotated[int, typer.Option("--show", help="rows of each table", min=1, max=1000)]


def command(
    workload: _Workload = "short",
    tokenizer: _Tokenizer = None,
    out: _Out = Path(".cache/bench"),
    equipped: _Equipped = False,
    show: _Shown = _SHOWN,
) -> None:
    """Count the interpreter's instructions of a request in this gateway, function by function.

    Takes half a minute. What the node does by the clock is overcounted, because a counted node is slow.
    """
    from smg_chaos.bench.bench import Bench, Plan
    from smg_chaos.bench.children import BenchError
    from smg_chaos.bench.figures.measurement import Lengths
    from smg_chaos.bench.figures.progress import Progress
    from smg_chaos.bench.gateways.engines import EngineChoice
    from smg_chaos.bench.load.workload import Load
    from smg_chaos.bench.load.workloads import chosen
    from smg_chaos.bench.session import bundle_of, until_told
    from smg_node.system_clock import SystemClock

    if workload not in _WORKLOADS:
        known = " or ".join(_WORKLOADS)
        raise typer.BadParameter(f"{known}, not {workload!r}", param_hint="--workload")
    folder = out / f"instructions-{SystemClock().now_ms()}"
    folder.mkdir(parents=True)
    path = folder.resolve() / f"{workload}.json"
    kind = EQUIPPED if equipped else "smg-node"
    plan = Plan(
        workloads=chosen([workload], []),
        gateways=[counted(Wanted(kind, KINDS[kind]), path)],
        folder=folder,
        peers=Path(),
        bundle=bundle_of(tokenizer),
        engine=EngineChoice("vllm", "h2", "each", tokenizer, "127.0.0.1"),
        rounds=1,
        lengths=Lengths(0.5, 12.0),
        load=Load(clients=_CLIENTS),
        client_processes=1,
        # Its requests would be among those that are counted, and they are others.
        first_run=False,
    )
    bench = Bench(plan, Progress(Console(stderr=True)), SystemClock().monotonic_s)
    try:
        with bench.progress.shown(bench.measurements()), asyncio.Runner() as runner:
            runner.run(until_told(bench))
    except (BenchError, OSError) as error:
        print(f"smg-chaos instructions: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    finally:
        bench.kill_rest()
    if not path.is_file():
        print(f"smg-chaos instructions: not enough requests; logs: {folder}", file=sys.stderr)
        raise typer.Exit(1)
    print(told(msgspec.json.decode(path.read_bytes(), type=Counted), show))


app = typer.Typer(add_completion=False)
app.command(name="instructions")(command)
