"""Memory of a node by its number of processes (`smg-chaos process-memory`), beside another gateway's.

A gateway at a time is started in front of one simulated engine with a real vocabulary, and asked for answers to
documents that nobody has seen before, each over a connection of its own, so that every process has encoded some. Then
it is looked at when it has come to rest: shared pages count once (PSS), and what a process has written and no other
process has is its own. What an added process takes is the difference to the fewest, by the number of processes added.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from smg_chaos.bench.children import BenchError, fetch
from smg_chaos.bench.figures.process_accounting import ProcessMemory, memory_by_process
from smg_chaos.bench.gateways.engines import EngineChoice, listening, start_grpc
from smg_chaos.bench.gateways.gateways import (
    OURS,
    Gateway,
    is_installed,
    ready,
    start,
    wanted_of,
)
from smg_chaos.bench.load.corpus import Corpus, standard_library
from smg_chaos.bench.load.script import Script
from smg_chaos.engine.scripts.bundle import BundleError, folder_bundle

_PEER: Final = "smg"
_READY_S: Final = 120.0
_REST_S: Final = 4.0
"""A node's memory is given back some seconds after the last work."""
_ANSWER_S: Final = 60.0
_AT_ONCE: Final = 4
_COUNTS: Final = (1, 2, 3)
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Load:
    """What each process is asked on the average before it is looked at: documents, and their size."""

    documents: int = 60
    document_bytes: int = 32_768
    flags: Sequence[str] = ()
    """What else the node is started with."""


_LOAD: Final = Load()


@dataclass(frozen=True, slots=True)
class Found:
    """Memory of a gateway that was warm; `processes` is 0 for one that has no such number."""

    gateway: str
    processes: int
    memory: Sequence[ProcessMemory]

    @property
    def pss(self) -> int:
        """Bytes of all processes, shared pages once."""
        return sum(one.pss for one in self.memory)


async def measured(
    counts: Sequence[int], folder: Path, clock_s: Callable[[], float], *, load: Load, peers: Path
) -> list[Found]:
    """Return the memory of a node with each number of processes, then that of SMG where it is installed.

    BenchError where one does not start or does not answer. The vocabulary is that of `folder`/tokenizer.
    """
    tokenizer = folder / "tokenizer"
    corpus, found = standard_library(), []
    choice = EngineChoice(tokenizer=tokenizer)
    script = Script(folder_bundle(tokenizer), tokens_max=64)
    engine, port = start_grpc(choice, script, folder, step_ms=0)
    asked = [(OURS, count) for count in counts]
    if is_installed(wanted_of(_PEER).kind, peers):
        asked.append((_PEER, 0))
    try:
        await listening(engine, clock_s)
        for name, count in asked:
            flags = ("--processes", str(count), *load.flags) if name == OURS else ()
            wanted = wanted_of(" ".join((f"{name}-{count}:{name}", *flags)))
            gateway = start(wanted, engine, port, folder, peers)
            assert gateway.child is not None, "it was started here"
            try:
                await ready(gateway, _READY_S, clock_s, answer_s=_ANSWER_S)
                documents = load.documents * max(count, *counts if not count else (1,))
                await _warm(gateway, corpus, documents, load.document_bytes)
                await asyncio.sleep(_REST_S)
                found.append(Found(name, count, memory_by_process(gateway.pid)))
            finally:
                await gateway.child.stop()
    finally:
        await engine.stop()
    return found


async def _warm(gateway: Gateway, corpus: Corpus, documents: int, size: int) -> None:
    """Ask for an answer to each of so many documents, a few at a time; BenchError for any but 200."""
    numbers = iter(range(documents))

    async def ask() -> None:
        for number in numbers:
            body = document_request(gateway.model, number, corpus.document(number, size))
            status, answer = await fetch(
                gateway.host,
                gateway.port,
                "POST",
                "/v1/chat/completions",
                body,
                timeout_s=_ANSWER_S,
            )
            if status != 200:
                raise BenchError(f"{gateway.label} answers {status}: {answer[:300]!r}")

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(ask())


def document_request(model: str, number: int, escaped: bytes) -> bytes:
    """Return the body of a chat request about a document in JSON spelling."""
    content = b'"%010d. %b"' % (number, escaped)
    return b'{"model":"%b","max_tokens":2,"messages":[{"role":"user","content":%b}]}' % (
        model.encode(),
        content,
    )


def table(found: Sequence[Found]) -> str:
    """Return a line for each gateway: total, what each process has of its own, and what an added process takes."""
    lines = [f"{'gateway':<9} {'processes':>9}  {'PSS MB':>7}  {'added':>6}  own MB of each"]
    ours = [one for one in found if one.processes]
    first = min(ours, key=lambda one: one.processes, default=None)
    for one in found:
        added = ""
        if first is not None and one.processes > first.processes:
            more = one.processes - first.processes
            added = f"{(one.pss - first.pss) / more / _MB:.1f}"
        own = " ".join(f"{each.own / _MB:.0f}" for each in one.memory)
        count = str(one.processes or "")
        lines.append(f"{one.gateway:<9} {count:>9}  {one.pss / _MB:>7.1f}  {added:>6}  {own}")
    return "\n".join(lines)


def process_memory(
    tokenizer: Annotated[
        Path, typer.Option(help="folder with a real tokenizer", file_okay=False)
    ] = Path(".cache/vocabulary/qwen"),
    processes: Annotated[
        list[int] | None,
        typer.Option(help="data processes of a node (1 2 3); repeat it", min=1, max=64),
    ] = None,
    documents: Annotated[
        int, typer.Option(help="asked of each process before it is looked at", min=1, max=10_000)
    ] = _LOAD.documents,
    document_bytes: Annotated[
        int, typer.Option(help="size of each", min=100, max=1 << 20)
    ] = _LOAD.document_bytes,
    flags: Annotated[str, typer.Option(help="more flags of the node")] = "",
    peers: Annotated[Path, typer.Option(help="where SMG is installed, if it is")] = Path(
        ".cache/peers"
    ),
) -> None:
    """Measure the memory of a node by its number of processes, beside SMG's. Linux only."""
    from smg_node.system_clock import SystemClock

    load = Load(documents, document_bytes, tuple(flags.split()))
    counts = sorted(set(processes or _COUNTS))
    if not (tokenizer / "tokenizer.json").is_file():
        words = f"{tokenizer} has no tokenizer.json; --tokenizer names a folder that has one"
        print(f"smg-chaos process-memory: {words}", file=sys.stderr)
        raise typer.Exit(2)
    try:
        with tempfile.TemporaryDirectory(prefix="smg-process-memory-") as name:
            folder = Path(name)
            (folder / "tokenizer").symlink_to(tokenizer.resolve())
            clock_s = SystemClock().monotonic_s
            work = measured(counts, folder, clock_s, load=load, peers=peers)
            found = asyncio.run(work)
    except (BenchError, BundleError, OSError) as error:
        print(f"smg-chaos process-memory: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(table(found))


app = typer.Typer(add_completion=False)
app.command(name="process-memory")(process_memory)
