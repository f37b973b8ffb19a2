"""Samples: random answers with known content (calls, text around them, reasoning) and what is
unusual about each.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from smg_chaos.opinion.spellings import SPELLINGS, THOUGHTS, Called, Spelling
from smg_node.core.generation.request import Tool

_WORDS: Final = ("Ghent", "tide tables", "Zürich", "東京", "🙂 ok", "a b", "x<y", "100%")
_HARD: Final = (
    ("a quote or a backslash", 'say "hi" \\ there'),
    ("brackets", "f(x) { return [1, 2}; }"),
    ("lines", "first\nsecond\n  third"),
    ("an entity", "a &lt; b &amp; c"),
    ("a lone angle bracket", "if a < b and c > d"),
    ("a number as text", "007"),
    ("a word of JSON as text", "true"),
    ("null as text", "null"),
    ("an apostrophe", "it's late, isn't it"),
    ("a closer of the format", ""),
    ("blanks at its ends", "  padded  "),
    ("nothing", ""),
)
_CLOSERS: Final = {
    "hermes": "</tool_call>",
    "json": "}]",
    "llama3_json": "};",
    "mistral": "[TOOL_CALLS]",
    "cohere": "<|END_ACTION|>",
    "qwen_xml": "</tool_call>",
    "glm": "</tool_call>",
    "deepseek_v3": "```",
    "deepseek_v31": "<｜tool▁call▁end｜>",
    "dsml": "</｜DSML｜invoke>",
    "dsml_v4": "</｜DSML｜invoke>",
    "kimi_k2": "<|tool_call_end|>",
    "minimax_m2": "</invoke>",
    "step3": "</steptml:invoke>",
    "pythonic": ")]",
}
_TRIMMED: Final = frozenset(("qwen_xml", "minimax_m2"))
_BEFORE: Final = ("", "", "Let me look.", "a < b, so:", "Zürich 🙂:")
_AFTER: Final = ("", "", "", "Done.", "And 2 > 1.")


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer and its content. `hard` names what is unusual about it, for the list of
    differences.
    """

    ours: str
    theirs: str
    text: str
    calls: tuple[Called, ...] = ()
    said: str = ""
    thought: str = ""
    prompt: str = ""
    tools: tuple[Tool, ...] = ()
    hard: frozenset[str] = field(default_factory=frozenset)


def call_sample(spelling: Spelling, rng: Random) -> Sample:
    """Return an answer with one to three calls, and perhaps text around them."""
    hard: set[str] = set()
    calls: list[Called] = []
    tools: dict[str, Tool] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = f"{rng.choice(('find_museum', 'get_tide', 'do-it', 'plan'))}_{len(tools)}"
        arguments, properties = _arguments(spelling, rng, hard)
        calls.append((name, arguments))
        tools[name] = Tool(name, parameters={"type": "object", "properties": properties})
    if len(calls) > 1:
        hard.add("several calls")
    before = "" if spelling.starts_only else rng.choice(_BEFORE)
    after = rng.choice(_AFTER) if spelling.ours not in ("json", "llama3_json", "mistral") else ""
    if before:
        hard.add("text before")
    if after:
        hard.add("text behind")
    text = before + spelling.print(calls) + after
    return Sample(
        spelling.ours,
        spelling.theirs,
        text,
        tuple(calls),
        before + after,
        tools=tuple(tools.values()),
        hard=frozenset(hard),
    )


def thought_sample(kind: tuple[str, str, str, str, bool], rng: Random) -> Sample:
    """Return an answer with reasoning, whose opening tag the prompt may have printed."""
    ours, theirs, opener, closer, printed = kind
    thought = rng.choice(("Easy.", "First, a < b.", "Zürich 🙂?", 'They said "no".'))
    said = rng.choice(("Yes.", "It is 42.", "Ok: x<y.", "東京"))
    hard: set[str] = set()
    shown = opener
    prompt = ""
    if printed and rng.random() < 0.5:
        shown, prompt = "", opener
        hard.add("the prompt printed the opener")
    if rng.random() < 0.2:
        said += f" {closer}"
        hard.add("a closer in the answer")
    if rng.random() < 0.2:
        thought += f" {opener} again"
        hard.add("an opener in the thought")
    if rng.random() < 0.15:
        thought = ""
        hard.add("an empty thought")
    return Sample(
        ours,
        theirs,
        f"{shown}{thought}{closer}{said}",
        said=said,
        thought=thought,
        prompt=prompt,
        hard=frozenset(hard),
    )


def samples(rng: Random, each: int) -> list[Sample]:
    """Return so many answers of every format that both programs read."""
    calls = [call_sample(spelling, rng) for spelling in SPELLINGS for _ in range(each)]
    thoughts = [thought_sample(kind, rng) for kind in THOUGHTS for _ in range(each)]
    return calls + thoughts


def _arguments(
    spelling: Spelling, rng: Random, hard: set[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    arguments: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for at in range(rng.choice((0, 1, 1, 2, 3))):
        value, schema = _value(spelling, rng, hard)
        key = f"{rng.choice(('city', 'max', 'from', 'note'))}_{at}"
        arguments[key], properties[key] = value, schema
    if not arguments:
        hard.add("no arguments")
    return arguments, properties


def _value(spelling: Spelling, rng: Random, hard: set[str]) -> tuple[Any, dict[str, Any]]:
    kind = rng.randrange(8)
    if kind == 0:
        hard.add("a number")
        return rng.choice((0, 42, -7, 9007199254740993)), {"type": "integer"}
    if kind == 1:
        hard.add("a fraction")
        return rng.choice((0.5, -2.25, 1e20)), {"type": "number"}
    if kind == 2:
        hard.add("a boolean")
        return rng.choice((True, False)), {"type": "boolean"}
    if kind == 3:
        hard.add("a list")
        return [rng.choice(_WORDS) for _ in range(rng.randrange(3))], {"type": "array"}
    if kind == 4:
        hard.add("an object")
        return {"a": rng.choice(_WORDS), "b": {"c": [1, None]}}, {"type": "object"}
    if kind == 5:
        name, text = rng.choice(_HARD)
        if name == "a closer of the format":
            text = f"x {_CLOSERS[spelling.ours]} y"
        if name == "blanks at its ends" and spelling.ours in _TRIMMED:
            name, text = "words", "plain"
        hard.add(f"text with {name}" if name != "nothing" else "empty text")
        return text, {"type": "string"}
    return rng.choice(_WORDS), {"type": "string"}


def as_openai(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the tools as a request has them."""
    return [
        {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}
        for tool in tools
    ]


def shown(arguments: str) -> Any:
    """Return the value of arguments, or their text if they are no JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
