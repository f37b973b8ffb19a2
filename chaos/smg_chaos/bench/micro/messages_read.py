"""Messages benchmark (`smg-chaos messages-read`): CPU time of reading bodies of the Messages API.

A coding client sends its whole conversation each time: 50 KB to begin with, some megabytes later. The first
are read on the loop, so they have a target. Larger ones are decoded and read in a thread, which lets go of the
interpreter's lock after every slice of work: the longest slice is what a loop waits for at most.
"""

import json
import time
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Annotated, Any, Final, NamedTuple

import typer

from smg_node.dialects.json_body import read_json, read_large_json
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from smg_node.http.message.large_bodies import release_messages, with_rests

SMALL_MS: Final = 1.0
"""A body of 50 KB, on one core of 2020 or later."""
SLICE_MS: Final = 5.0
"""The longest slice while a body of 2 MB is decoded and read."""
_READS: Final = 5
"""In a round of a row; the first of them finds a processor that remembers another row."""
_MODEL: Final = "claude-smg"


class Case(NamedTuple):
    """A conversation: how many bytes it has, and its target."""

    name: str
    characters: int
    target_ms: float | None


CASES: Final = (Case("50 KB", 50_000, SMALL_MS), Case("2 MB", 2_000_000, None))


class Scene:
    """One body, read again and again."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._seals = ThoughtSeals(PlainVault())
        self._reader = MessagesReader(ReaderOptions(), self._seals)
        self.raw = json.dumps(self._body(case.characters)).encode()

    def read_ms(self) -> float:
        """Return the CPU time of reading the decoded body."""
        body = read_json(self.raw)
        start_ns = time.thread_time_ns()
        self._reader.read(body)
        return (time.thread_time_ns() - start_ns) / 1e6

    def longest_slice_ms(self) -> float:
        """Return the CPU time of the longest slice while the body is decoded, read and let go of."""
        slices: list[int] = []
        start_ns = time.thread_time_ns()

        def rest(_pause_s: float = 0.0) -> None:
            nonlocal start_ns
            now_ns = time.thread_time_ns()
            slices.append(now_ns - start_ns)
            start_ns = now_ns

        body = read_large_json(self.raw, run=partial(with_rests, rest=rest))
        rest()
        with_rests(self._reader.read_steps(body), rest)
        with_rests(release_messages(body), rest)
        rest()
        return max(slices) / 1e6

    def _body(self, characters: int) -> dict[str, Any]:
        """Return a conversation of about that many characters: twelve tools, then calls and results."""
        schema = {
            "type": "object",
            "properties": {"what": {"type": "string", "description": "x" * 400}},
        }
        tools = [
            {"name": f"Tool{at}", "description": "It does. " * 250, "input_schema": schema}
            for at in range(12)
        ]
        messages: list[dict[str, Any]] = [{"role": "user", "content": [_text("Please do it.")]}]
        signature = self._seals.seal("A thought about it. " * 40, tenant="", model=_MODEL)
        length = 12 * 2_800
        while length < characters:
            name = f"toolu_{len(messages)}"
            call = {"type": "tool_use", "id": name, "name": "Tool1", "input": {"what": "y" * 200}}
            thought = {"type": "thinking", "thinking": "", "signature": signature}
            result = {
                "type": "tool_result",
                "tool_use_id": name,
                "content": "A line of it.\n" * 200,
            }
            messages.append({"role": "assistant", "content": [thought, _text("So."), call]})
            messages.append({"role": "user", "content": [result]})
            length += 3_500
        return {
            "model": _MODEL,
            "max_tokens": 32_000,
            "system": [_text("x-anthropic-billing-header: x;"), _text("Be kind. " * 700)],
            "tools": tools,
            "messages": messages,
            "thinking": {"type": "adaptive", "display": "omitted"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def measure(cases: Sequence[Case], *, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each case: medians over the rounds, in which all take turns."""
    scenes = [Scene(case) for case in cases]
    reading: list[list[float]] = [[] for _ in scenes]
    for number in range(rounds + 1):
        for scene, times in zip(scenes, reading, strict=True):
            spent = median(scene.read_ms() for _ in range(_READS))
            if number:
                times.append(spent)
    return [_row(scene, times) for scene, times in zip(scenes, reading, strict=True)]


def _row(scene: Scene, times: Sequence[float]) -> dict[str, Any]:
    # Once is not enough: a virtual machine now and then counts its host's work as a call's own.
    longest = min(scene.longest_slice_ms() for _ in range(3))
    target = scene.case.target_ms
    return {
        "case": scene.case.name,
        "bytes": len(scene.raw),
        "read_ms": median(times),
        "worst_ms": max(times),
        "longest_slice_ms": longest,
        "kept": longest <= SLICE_MS and (target is None or median(times) <= target),
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as text."""
    lines = [
        "CPU ms of reading a decoded body: median (worst round), and the longest slice of decoding and reading"
    ]
    lines += [
        f"  {row['case']:8} {row['bytes']:9,} bytes {row['read_ms']:7.2f} ({row['worst_ms']:7.2f}),"
        f" {row['longest_slice_ms']:5.2f}{'' if row['kept'] else ' MISSED'}"
        for row in rows
    ]
    return "\n".join(lines)


def messages_read(
    rounds: Annotated[int, typer.Option(help="rounds in which all rows take turns", min=1)] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure what it costs to read bodies of the Messages API; exits 1 if a target is missed."""
    rows = measure(CASES, rounds=rounds)
    print(json.dumps(rows, indent=2) if as_json else table(rows))
    if not all(row["kept"] for row in rows):
        raise typer.Exit(1)


app: Final = typer.Typer(add_completion=False)
app.command(name="messages-read")(messages_read)
