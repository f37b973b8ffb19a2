"""Client events: what a client of Chat is shown of an answer, without the runs on this node's side; and what was run. Pure.

What a model says in several passes is one text to the client. Passes are set apart by a blank line, where neither has
blanks there itself. Citations count their places in all of it.
"""

from collections.abc import Collection, Iterable, Mapping
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
    """How the texts of one choice ended, kind by kind, and after which of them something was run.

    `content` are the kinds of which its content is put together.
    """

    __slots__ = ("_content", "_ends", "_length", "_ran")

    def __init__(self, content: Collection[str]) -> None:
        self._content = content
        self._ends: dict[str, str] = {}
        self._ran: set[str] = set()
        self._length = 0

    def run(self) -> None:
        """Note that a tool was called."""
        self._ran.update(self._ends)

    def before(self, kind: str, text: str) -> str:
        """Return what stands before a text of this kind that begins so."""
        if not text or kind not in self._ran:
            return ""
        self._ran.discard(kind)
        return "" if self._ends[kind].isspace() or text[0].isspace() else _APART

    def end(self, block: BlockEnd, before: str) -> BlockEnd:
        """Take a block that is over, and return it with what stands before its text."""
        kind, text = block.kind, before + block.text
        if text and kind != "call":
            self._ends[kind] = text[-1]
        if kind not in self._content:
            return msgspec.structs.replace(block, text=text) if before else block
        cited = tuple(_moved(one, self._length + len(before)) for one in block.annotations)
        self._length += len(text)
        if not (before or cited):
            return block
        return msgspec.structs.replace(block, text=text, annotations=cited)


class ClientEvents:
    """Filters the events of one answer. `content` are the kinds of blocks that make up the content of a message."""

    def __init__(self, content: Collection[str]) -> None:
        self._content = content
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
        passes = self._passes.setdefault(choice, _Passes(self._content))
        if isinstance(event, BlockStart):
            if event.owner is not None:
                self._ours[place] = None
                passes.run()
                return
            if event.apart:
                passes.run()
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
            event = passes.end(event, self._before.pop(choice, ""))
        out.append(event)


def client_choice(choice: Choice, content: Collection[str]) -> tuple[Choice, list[dict[str, Any]]]:
    """Return what the client is shown of a whole choice, and what was run; `content` as in `ClientEvents`."""
    passes, runs = _Passes(content), []
    kept: list[BlockEnd] = []
    places: dict[int, int] = {}
    for place, block in enumerate(choice.blocks):
        if block.owner is None:
            places[place] = len(kept)
            if block.apart:
                passes.run()
            kept.append(passes.end(block, passes.before(block.kind, block.text)))
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


def annotations_of(block: BlockEnd) -> list[dict[str, Any]]:
    """Return the citations of a text as a message has them, which knows addresses only."""
    keys = ("start_index", "end_index", "url", "title")
    return [
        {"type": "url_citation", "url_citation": {key: one.get(key) for key in keys}}
        for one in block.annotations
        if one.get("type") == "url_citation"
    ]


def _moved(annotation: Mapping[str, Any], by: int) -> Mapping[str, Any]:
    """Return an annotation whose places are further on."""
    places = {
        key: annotation[key] + by
        for key in ("start_index", "end_index", "index")
        if type(annotation.get(key)) is int
    }
    return {**annotation, **places}
