"""Client events: what a client of Chat is shown of an answer, without the runs on this node's side; and what was run. Pure.

What a model says in several passes is one text to the client. Passes are set apart by a blank line, where neither has
blanks there itself.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from smg_node.core.generation.answer import Choice
from smg_node.core.generation.events import (
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Listed,
    RunEnd,
    RunNote,
    RunStart,
)

_APART: Final = "\n\n"


class _Passes:
    """How the texts of one choice ended, kind by kind, and after which of them something was run."""

    __slots__ = ("_ends", "_ran")

    def __init__(self) -> None:
        self._ends: dict[str, str] = {}
        self._ran: set[str] = set()

    def run(self) -> None:
        """Note that a tool was called."""
        self._ran.update(self._ends)

    def before(self, kind: str, text: str) -> str:
        """Return what stands before a text of this kind that begins so."""
        if not text or kind not in self._ran:
            return ""
        self._ran.discard(kind)
        return "" if self._ends[kind].isspace() or text[0].isspace() else _APART

    def end(self, kind: str, text: str) -> None:
        """Take a text that is over."""
        if text and kind != "call":
            self._ends[kind] = text[-1]


class ClientEvents:
    """Filters the events of one answer."""

    def __init__(self) -> None:
        self._ours: dict[tuple[int, int], BlockEnd | None] = {}
        self._results: dict[tuple[int, int], RunEnd] = {}
        self._passes: dict[int, _Passes] = {}
        self._fresh: dict[int, str] = {}
        """The kind of each choice's open block that has no text yet."""
        self._before: dict[int, str] = {}
        """What stands before the text of each choice's open block."""

    def waits(self, choice: int) -> bool:
        """Whether the first text of a block that is open may be changed."""
        return choice in self._fresh

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return what the client is shown of these."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, Delta | BlockStart | BlockEnd):
                self._block(event, out)
            elif isinstance(event, RunEnd):
                self._results[event.choice, event.block] = event
            elif not isinstance(event, Listed | RunStart | RunNote):
                out.append(event)
        return out

    def runs(self) -> list[dict[str, Any]]:
        """Return what was run, in the order of the calls."""
        places = sorted(place for place, block in self._ours.items() if block is not None)
        calls = [(self._ours[place], self._results.get(place)) for place in places]
        return [shown_run(call, end) for call, end in calls if call is not None and end is not None]

    def _block(self, event: BlockStart | Delta | BlockEnd, out: list[Event]) -> None:
        choice, place = event.choice, (event.choice, event.block)
        passes = self._passes.setdefault(choice, _Passes())
        if isinstance(event, BlockStart):
            if event.owner is not None:
                self._ours[place] = None
                passes.run()
                return
            self._fresh[choice] = event.kind
        elif place in self._ours:
            if isinstance(event, BlockEnd) and event.owner is not None and not event.owner.hidden:
                self._ours[place] = event
            return
        elif isinstance(event, Delta):
            kind = self._fresh.pop(choice, "") if event.text else ""
            before = passes.before(kind, event.text)
            if before:
                self._before[choice] = before
                event = msgspec.structs.replace(event, text=before + event.text)
        else:
            self._fresh.pop(choice, None)
            passes.end(event.kind, event.text)
            event = _with(event, self._before.pop(choice, ""))
        out.append(event)


def client_choice(choice: Choice) -> tuple[Choice, list[dict[str, Any]]]:
    """Return what the client is shown of a whole choice, and what was run."""
    passes, runs = _Passes(), []
    kept: list[BlockEnd] = []
    places: dict[int, int] = {}
    for place, block in enumerate(choice.blocks):
        if block.owner is None:
            places[place] = len(kept)
            kept.append(_with(block, passes.before(block.kind, block.text)))
            passes.end(block.kind, block.text)
            continue
        passes.run()
        end = choice.runs.get(block.block)
        if end is not None and not block.owner.hidden:
            runs.append(shown_run(block, end))
    rows = [
        (row, places[place])
        for row, place in zip(choice.logprobs, choice.row_blocks, strict=True)
        if place in places
    ]
    return Choice(
        kept,
        [row for row, _ in rows],
        choice.ids,
        choice.echo,
        choice.finish,
        [place for _, place in rows],
    ), runs


def shown_run(call: BlockEnd, end: RunEnd) -> dict[str, Any]:
    """Return a run as clients are shown it that ask for runs."""
    owner, result = call.owner, end.result
    assert owner is not None, "only calls of tools on this node's side are run"
    error: dict[str, Any] | None = None
    if result.error is not None:
        told: dict[str, Any] = {"content": result.error.content}
        if result.error.type != "mcp_tool_execution_error":
            told = {"code": result.error.code, "message": result.error.message}
        error = {"type": result.error.type, **told}
    return {
        "server": owner.server,
        "name": owner.tool,
        "arguments": call.text or "{}",
        "output": result.text if error is None else None,
        "error": error,
        "ms": result.duration_ms,
    }


def _with(block: BlockEnd, before: str) -> BlockEnd:
    return msgspec.structs.replace(block, text=before + block.text) if before else block
