"""Answers of models laid over the parsers: in every cutting the same pieces, and no law broken.

A transcript of a format (tests/transcripts/parsers/NAME.txt) has blocks of one command:

    parse thoughts=think tools=hermes tail="<think>\\n"
    what the model prints, up to the line of dashes
    ----
    reasoning "…"
    call find_museum call_0
    arguments "…"
    text "…"

`thoughts`, `tools` or `joint` name formats (a thought's with options: `think+implicit+trim`); `tail` is the end of the prompt, `controls` the tokens that end
its turns, separated by blanks; both may have the escapes of JSON. The tools are `TOOLS`, or none with
`choice=none`, with `builtins=yes` also `BUILTINS`; with `continued=yes` the tail is the message that goes on. The text has no newline at its end unless the block says `newline`.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.core.generation.request import Tool
from smg_node.mcp.builtin.builtin_tool import builtin_tool
from smg_node.parsers.reading.answer_grammar import PLAIN, AnswerFormat
from smg_node.parsers.reading.format import FormatRequest, JointFormat, start_of, varied
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from support.tools.transcripts import head_of, parse

FOLDER: Final = Path(__file__).parents[2] / "transcripts" / "parsers"


def _tool(name: str, **properties: Any) -> Tool:
    return Tool(name, parameters={"type": "object", "properties": properties})


_STRING: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer"}
TOOLS: Final = {
    tool.name: tool
    for tool in (
        _tool(
            "find_museum",
            city=_STRING,
            max=_INTEGER,
            open={"type": "boolean"},
            note={"type": ["string", "null"]},
            tags={"type": "array", "items": _STRING},
        ),
        _tool("get_tide", port=_STRING),
        _tool("list_rooms"),
        _tool("find_train", **{"from": _STRING, "to": _STRING}),
        _tool("convert", amount={"type": "number"}, to=_STRING),
        _tool("book_room", nights=_INTEGER),
        _tool(
            "plan",
            city=_STRING,
            days={"type": "array", "items": _STRING},
            options={"type": "object", "properties": {"pace": _INTEGER}},
        ),
        _tool("write_file", path=_STRING, text=_STRING),
    )
}
"""The functions that transcripts call; any other name is one that nobody declared."""
BUILTINS: Final = {
    tool.name: tool
    for tool in (
        builtin_tool("web_search", {}),
        builtin_tool("code_interpreter", {}, name="run_code"),
    )
}
"""Built-in tools, which are offered besides with `builtins=yes`; one has a name of its own."""


@dataclass(frozen=True, slots=True)
class Case:
    """One answer and what it is read with."""

    thoughts: str
    tools: str
    joint: str
    tail: str
    controls: tuple[str, ...]
    calls: bool
    continued: bool
    text: str
    label: str
    builtins: bool = False

    def scanner(self) -> Scanner:
        """Return a scanner at the answer's beginning."""
        form, openers, closers, fixed = _form(self.joint, self.thoughts, self.tools, self.controls)
        return Scanner(
            form,
            asked=FormatRequest(self._tools()),
            start=start_of(self.tail, openers, closers, fixed=fixed, continued=self.continued),
            new_id=lambda _name, ordinal: f"call_{ordinal}",
            calls=self.calls,
        )

    def _tools(self) -> Mapping[str, Tool]:
        if not self.calls:
            return {}
        return {**TOOLS, **BUILTINS} if self.builtins else TOOLS


@cache
def _form(
    joint: str, thoughts: str, tools: str, controls: tuple[str, ...]
) -> tuple[AnswerFormat | JointFormat, tuple[str, ...], tuple[str, ...], Any]:
    if joint:
        both = known_joint().get(joint)
        return both, both.openers, both.closers, both.start
    name, *options = thoughts.split("+")
    thought = varied(known_thoughts().get(name), options) if name else PLAIN
    known = [known_tools().get(name) for name in tools.split(",") if name]
    return AnswerFormat(thought, known, controls), thought.openers, thought.closers, thought.start


def case_of(arguments: dict[str, str], given: str, label: str = "") -> Case:
    """Return the case that a block of a transcript describes."""
    left = {**arguments}
    tools = left.pop("tools", "")
    calls = left.pop("choice", "auto") != "none"
    case = Case(
        thoughts=left.pop("thoughts", ""),
        tools=tools if calls else "",
        joint=left.pop("joint", ""),
        tail=_unescaped(left.pop("tail", "")),
        controls=tuple(_unescaped(left.pop("controls", "")).split()),
        calls=calls,
        continued=left.pop("continued", "no") == "yes",
        text=given if "newline" in left else given.removesuffix("\n"),
        label=label,
        builtins=left.pop("builtins", "no") == "yes",
    )
    left.pop("newline", None)
    assert not left, f"{label}: nobody knows {sorted(left)}"
    return case


def _unescaped(text: str) -> str:
    return str(json.loads('"' + text.replace('"', '\\"') + '"')) if "\\" in text else text


def cases(name: str = "*") -> Iterator[Case]:
    """Yield the cases of every transcript whose name fits."""
    for path in sorted(FOLDER.glob(f"{name}.txt")):
        transcript = parse(path.read_text(encoding="utf-8"), name=str(path))
        for block in transcript.blocks:
            _, arguments = head_of(path, block)
            yield case_of(arguments, block.given, f"{path.name}:{block.line}")


def pieces_of(case: Case, chunks: Iterable[str]) -> list[Piece]:
    """Return what is said of an answer that arrives in `chunks`, neighbours of one kind joined."""
    scanner = case.scanner()
    said: list[Piece] = []
    for chunk in chunks:
        said += scanner.feed(chunk)
    said += scanner.finish()
    return joined(said)


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with neighbours of one kind as one; none may be empty."""
    out: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Call):
            out.append(piece)
            continue
        assert piece.text, f"an empty piece in {pieces}"
        last = out[-1] if out else None
        if not isinstance(last, Call) and type(last) is type(piece):
            last.text += piece.text
        else:
            out.append(type(piece)(piece.text))
    return out


def shown(pieces: Sequence[Piece]) -> str:
    """Return the pieces as a transcript shows them."""
    lines: list[str] = []
    for piece in pieces:
        match piece:
            case Call():
                lines.append(f"call {piece.name} {piece.call_id}")
            case Text():
                lines.append(f"text {json.dumps(piece.text, ensure_ascii=False)}")
            case Reasoning():
                lines.append(f"reasoning {json.dumps(piece.text, ensure_ascii=False)}")
            case Arguments():
                lines.append(f"arguments {json.dumps(piece.text, ensure_ascii=False)}")
    return "\n".join(lines)


def in_chunks(text: str, size: int) -> list[str]:
    """Return `text` in chunks of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def cut_anyhow(text: str, seed: int) -> list[str]:
    """Return `text` in chunks of 0 to 12 characters."""
    rng = random.Random(seed)
    chunks: list[str] = []
    at = 0
    while at < len(text):
        size = rng.choice((0, 1, 1, 1, 2, 3, 5, 8, 12))
        chunks.append(text[at : at + size])
        at += size
    return chunks


def check_cuts(case: Case) -> list[Piece]:
    """Assert that the answer says the same in every cutting; return what it says."""
    whole = pieces_of(case, [case.text])
    text = case.text
    for size in (1, 2, 3, 7, 40):
        assert pieces_of(case, in_chunks(text, size)) == whole, f"{case.label}: chunks of {size}"
    for at in range(1, len(text)):
        assert pieces_of(case, [text[:at], text[at:]]) == whole, f"{case.label}: cut at {at}"
    for seed in range(8):
        assert pieces_of(case, cut_anyhow(text, seed)) == whole, f"{case.label}: seed {seed}"
    return whole


def check_prefixes(case: Case) -> None:
    """Assert of every beginning of the answer that it is read, the same in one go and by characters."""
    for end in range(len(case.text)):
        part = case.text[:end]
        assert pieces_of(case, [part]) == pieces_of(case, part), f"{case.label}: ends at {end}"
