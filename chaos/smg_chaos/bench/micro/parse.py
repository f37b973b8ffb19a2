"""Parse benchmark (`smg-chaos parse`): CPU time of reading reasoning and tool calls out of a
model's text.

The first table is of a stream: tokens one by one through a detokenizer, the parsers, and on to
events, against the same stream with nothing to look for; both take turns. The second is of growth
with length: texts of one size and of a quarter of it, by single characters and in one go, through
every format there is. A parser that takes four times as long for four times the text is linear; a
quadratic one would take sixteen.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, Final

import typer

from smg_chaos.bench.micro.parse_texts import (
    CALL_US,
    TEXT_US,
    Speech,
    Vocabulary,
    garbage,
    speeches,
)
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import Sampling, Tool
from smg_node.engines.chunk import Chunk
from smg_node.parsers.reading.parser import Parser, Plain
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import Ends
from smg_node.tokens.decoding.token_table import TokenTable

_WORDS: Final = 2_000
_TOOLS: Final = (
    Tool("write", parameters={"type": "object", "properties": {"text": {"type": "string"}}}),
)
LONG_S: Final = 3.0
"""Seconds that a megabyte may take by single characters, on one core of 2020 or later."""
AT_ONCE_S: Final = 1.0
"""The same in one go."""
RATIO_MAX: Final = 8.0
"""How many times longer four times the text may take: between four and sixteen, nearer to four."""
_RATIO_FROM_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Tokenizer:
    """The part of a tokenizer that a stream without log probabilities asks for."""

    table: TokenTable


class Scene:
    """One answer, streamed again and again."""

    def __init__(self, speech: Speech, ids: Sequence[int], table: TokenTable) -> None:
        self.speech = speech
        self._chunks = [Chunk(0, (one,)) for one in ids]
        self._table = table
        self._printing = Printing(Chosen(speech.reasoning, speech.tools))

    def plain_us(self) -> float:
        """Return the CPU time of a token where nothing is looked for."""
        return self._told(Plain())

    def parsed_us(self) -> float:
        """Return the CPU time of a token where reasoning and calls are looked for."""
        return self._told(_scanner(self._printing))

    def _told(self, parser: Parser) -> float:
        stream = self._stream(parser)
        out: list[Event] = []
        feed = stream.feed
        start_ns = time.thread_time_ns()
        for chunk in self._chunks:
            out.clear()
            feed(chunk, out)
        return (time.thread_time_ns() - start_ns) / len(self._chunks) / 1e3

    def _stream(self, parser: Parser) -> ChoiceStream:
        detokenizer = self._table.detokenizer(
            prompt_tail=(), skip_special_tokens=False, spaces_between_special_tokens=True
        )
        tokenizer: Any = _Tokenizer(self._table)
        return ChoiceStream(
            0,
            sampling=Sampling(max_tokens=len(self._chunks) + 1),
            ends=Ends(frozenset(), frozenset(), frozenset(), frozenset()),
            tokenizer=tokenizer,
            detokenizer=detokenizer,
            parser=parser,
        )


def measure(scenes: Sequence[Scene], *, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each answer: medians over the rounds, in which all take turns."""
    plain: list[list[float]] = [[] for _ in scenes]
    added: list[list[float]] = [[] for _ in scenes]
    for number in range(rounds + 1):
        for scene, without, more in zip(scenes, plain, added, strict=True):
            base, parsed = scene.plain_us(), scene.parsed_us()
            if number:
                without.append(base)
                more.append(parsed - base)
    return [
        {
            "case": scene.speech.name,
            "plain_us": median(without),
            "added_us": median(more),
            "worst_us": max(more),
            "target_us": scene.speech.target_us,
            "kept": median(more) <= scene.speech.target_us,
        }
        for scene, without, more in zip(scenes, plain, added, strict=True)
    ]


def scenes_of(words: int) -> list[Scene]:
    """Return the answers, spelled with one vocabulary."""
    vocabulary = Vocabulary()
    spelled = [(speech, vocabulary.ids(speech.text, speech.markers)) for speech in speeches(words)]
    table = vocabulary.table()
    return [Scene(speech, ids, table) for speech, ids in spelled]


def formats() -> dict[str, tuple[Printing, tuple[str, ...]]]:
    """Return every format by kind and name, with the text that opens something in it."""
    found: dict[str, tuple[Printing, tuple[str, ...]]] = {}
    for name in known_thoughts():
        thought = known_thoughts().get(name)
        found[f"thoughts {name}"] = Printing(Chosen(name, "plain")), thought.openers
    for name in known_tools():
        tools = known_tools().get(name)
        found[f"calls {name}"] = Printing(Chosen("think", name)), (*tools.openers, *tools.starts)
    for name in known_joint():
        joint = known_joint().get(name)
        found[f"both {name}"] = Printing(Chosen(name, name)), joint.openers
    return found


def long_row(name: str, printing: Printing, openers: Sequence[str], size: int) -> dict[str, Any]:
    """Return how long a format takes for a long text, the worst of several, and for a quarter of it."""
    large, small = garbage(openers, size), garbage(openers, size // 4)
    by_one: dict[str, float] = {}
    at_once: dict[str, float] = {}
    ratio = 0.0
    for kind, text in large.items():
        quarter_s = _read_s(printing, small[kind])
        by_one[kind] = _read_s(printing, text)
        at_once[kind] = _once_s(printing, text)
        if by_one[kind] > _RATIO_FROM_S:
            ratio = max(ratio, by_one[kind] / max(quarter_s, 1e-6))
    scale = (1 << 20) / size
    slow_s, whole_s = max(by_one.values()) * scale, max(at_once.values()) * scale
    return {
        "format": name,
        "by_characters_s": slow_s,
        "worst": max(by_one, key=lambda kind: by_one[kind]),
        "at_once_s": whole_s,
        "ratio": ratio,
        "kept": slow_s <= LONG_S and whole_s <= AT_ONCE_S and ratio <= RATIO_MAX,
    }


def _read_s(printing: Printing, text: str) -> float:
    parser = _scanner(printing)
    start_ns = time.thread_time_ns()
    for character in text:
        parser.feed(character)
    parser.finish()
    return (time.thread_time_ns() - start_ns) / 1e9


def _once_s(printing: Printing, text: str) -> float:
    parser = _scanner(printing)
    start_ns = time.thread_time_ns()
    parser.feed(text)
    parser.finish()
    return (time.thread_time_ns() - start_ns) / 1e9


def _scanner(printing: Printing) -> Parser:
    return printing.scanner(
        tools=_TOOLS, calls=True, tail="", new_id=lambda _name, at: f"call_{at}"
    )


def table(rows: Sequence[dict[str, Any]], long: Sequence[dict[str, Any]]) -> str:
    """Return the figures as text."""
    lines = ["CPU us of a token: without parsers, and what they add (median; worst round; at most)"]
    lines += [
        f"  {row['case']:24} {row['plain_us']:5.2f} + {row['added_us']:5.2f}"
        f" ({row['worst_us']:5.2f}; {row['target_us']:.1f}) {_verdict(row)}"
        for row in rows
    ]
    if long:
        lines.append(
            f"CPU s of a megabyte: by characters (at most {LONG_S:g}), at once (at most"
            f" {AT_ONCE_S:g}), and times longer than a quarter of it (at most {RATIO_MAX:g})"
        )
    lines += [
        f"  {row['format']:24} {row['by_characters_s']:5.2f} {row['at_once_s']:5.2f}"
        f" {row['ratio']:5.1f} {_verdict(row)}  worst: {row['worst']}"
        for row in long
    ]
    return "\n".join(lines)


def _verdict(row: dict[str, Any]) -> str:
    return "kept" if row["kept"] else "MISSED"


_HELP: Final = (
    "Measure what reading thoughts and calls costs. Targets: it adds at most"
    f" {TEXT_US:g} us to a token of text or of a thought, at most {CALL_US:g} us inside calls; a megabyte takes"
    f" every format at most {LONG_S:g} s by single characters and {AT_ONCE_S:g} s in one go, and four times the"
    f" text at most {RATIO_MAX:g} times as long."
)


def parse(
    rounds: Annotated[int, typer.Option(help="rounds in which all rows take turns", min=1)] = 9,
    words: Annotated[int, typer.Option(help="of each answer that is streamed", min=50)] = _WORDS,
    long_kb: Annotated[
        int, typer.Option(help="size of the long texts, 0 for none of them", min=0)
    ] = 1024,
    only: Annotated[str, typer.Option(help="long texts only for formats with this in them")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure and print; the exit status does not depend on the targets."""
    rows = measure(scenes_of(words), rounds=rounds)
    long = [
        long_row(name, printing, openers, long_kb << 10)
        for name, (printing, openers) in formats().items()
        if long_kb and only in name
    ]
    print(json.dumps({"stream": rows, "long": long}, indent=2) if as_json else table(rows, long))


app: Final = typer.Typer(add_completion=False)
app.command(name="parse", help=_HELP)(parse)
