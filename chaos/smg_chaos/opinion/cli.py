"""CLI of `smg-chaos second-opinion`: the same answers read by our parsers and by the reference
gateway's.

Answers in every format that both read are generated at random, so that their content is known. The
reference reads them whole, by its routes `/parse/function_call` and `/parse/reasoning`; ours read
them by characters. Every difference is listed by format and part, with its shortest example. It
fails if ours is ever wrong.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer

from smg_chaos.bench.children import BenchError, Child, fetch, free_ports, spawn
from smg_chaos.opinion.differing import Differences, Heard, compare, ours, theirs
from smg_chaos.opinion.samples import Sample, as_openai, samples

_PEERS: Final = Path(".cache/peers")
_READY_S: Final = 60.0
_EXAMPLE_MAX: Final = 300

app: Final = typer.Typer(add_completion=False)


@app.command(name="second-opinion")
def second_opinion(
    each: Annotated[int, typer.Option(help="answers of every format", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="which ones")] = 1,
    peers: Annotated[Path, typer.Option(help="where `make bench-peers` installed it")] = _PEERS,
    examples: Annotated[bool, typer.Option(help="show an example of each difference")] = True,
) -> None:
    """Compare our parsers with the reference gateway's on made-up answers."""
    program = peers / "smg" / "bin" / "smg"
    if not program.exists():
        raise SystemExit(f"{program}: not installed. `make bench-peers` installs it.")
    made = samples(Random(seed), each)
    try:
        told = asyncio.run(_ask_both(program, made))
    except BenchError as error:
        raise SystemExit(str(error)) from error
    found = compare(told)
    print(table(found, len(made), examples=examples))
    if any(one.wrong != "theirs" for one in found.values()):
        raise SystemExit(1)


def table(found: dict[tuple[str, str, str], Differences], answers: int, *, examples: bool) -> str:
    """Return the differences as text."""
    lines = [f"{answers} answers, read by both; differences from what was printed:"]
    for (we, they, part), one in sorted(found.items()):
        about = ", ".join(f"{name} ({count})" for name, count in one.hard.most_common(4))
        lines.append(f"  {we:13} {they:15} {part:26} {one.count:4}   {about}")
        if examples and one.example is not None:
            text, right, ours_, theirs_ = one.example
            lines += [
                f"      printed {_short(text)}",
                f"      means   {_short(right)}",
                f"      ours    {_short(ours_)}",
                f"      theirs  {_short(theirs_)}",
            ]
    wrong = sum(one.count for one in found.values() if one.wrong != "theirs")
    lines.append(f"{sum(one.count for one in found.values())} differences, ours wrong in {wrong}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _EXAMPLE_MAX else f"{text[:_EXAMPLE_MAX]}…"


async def _ask_both(program: Path, made: Sequence[Sample]) -> list[tuple[Sample, Heard, Heard]]:
    port, metrics_port, nobody = free_ports(3)
    with TemporaryDirectory(prefix="smg-opinion-") as folder:
        command = [
            *(str(program), "launch", "--host", "127.0.0.1", "--port", str(port)),
            *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics_port)),
            # It starts only with a worker; parsing needs none, so this one never comes.
            *("--worker-urls", f"http://127.0.0.1:{nobody}"),
        ]
        child = spawn("smg", command, Path(folder) / "smg.log")
        try:
            await _ready(child, port)
            return [(one, ours(one), theirs(one, await _ask(port, one))) for one in made]
        finally:
            await child.stop()


async def _ready(child: Child, port: int) -> None:
    for _ in range(int(_READY_S / 0.1)):
        if child.died():
            raise BenchError(child.died())
        try:
            await fetch("127.0.0.1", port, "GET", "/liveness")
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise BenchError(f"smg did not listen in {_READY_S:.0f} s\n{child.last_words()}")


async def _ask(port: int, sample: Sample) -> dict[str, Any]:
    if sample.calls:
        path, body = "/parse/function_call", {"tool_call_parser": sample.theirs}
    else:
        path, body = "/parse/reasoning", {"reasoning_parser": sample.theirs}
    asked = {**body, "text": sample.text, "tools": as_openai(sample.tools)}
    status, answer = await fetch("127.0.0.1", port, "POST", path, json.dumps(asked).encode())
    if status != 200:
        raise BenchError(f"smg answered {status} to {sample.theirs}: {answer[:200]!r}")
    content: dict[str, Any] = json.loads(answer)
    return content
