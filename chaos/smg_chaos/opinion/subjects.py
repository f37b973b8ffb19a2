"""Subjects of the fuzzer: every known format with its markers, its answers, and a way to read it.

A format of calls is read behind any format of reasoning and the other way round, at any of the
places where prompts end, with calls on or off, and with what a grammar may have forced. What is
read is always what a model's `Printing` gives out.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Final, Literal, TypeAlias

from smg_chaos.opinion.laws import Losses
from smg_chaos.opinion.printed import CALLS, JOINT, TOOLS
from smg_chaos.opinion.spellings import SPELLINGS, Called
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Expect, Printing
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools

Kind: TypeAlias = Literal["thoughts", "tools", "joint"]

CONTROLS: Final = ("<|im_end|>", "<|user|>")
"""Tokens that end turns, as a tokenizer would have them."""
_NAMED: Final = "find_museum"
_WORDS: Final = (
    "Ghent",
    "Zürich 🙂",
    "東京",
    "a b",
    "x<y",
    "it's",
    'say "hi" \\ there',
    "",
    " a\n",
)
_PROSE: Final = (
    "",
    "",
    "Let me look.\n",
    "a < b, so: ",
    "\n\n",
    "Well [1]",
    " {",
    "Done.\n",
    "It's 42.",
)
_OPTIONS: Final = ("implicit", "line", "interleaved", "trim", ":x")

# A grammar of messages drops more than single tokens: a header with all that stands in it.
_TOKEN: Final = re.compile(r"</?[^<>\s]*>|<[^<>]*$|<\|?[a-z_]+(?: [^<>]*)?>")
_HEADER_TOKEN: Final = r"<\|(?:start|channel|constrain)\|>"
_HEADER: Final = re.compile(_HEADER_TOKEN + r".{0,1200}?<\|message\|>", re.DOTALL)
_HEADER_PART: Final = re.compile(_HEADER_TOKEN + r"[^<]*")
_NO_BODY: Final = re.compile(
    _HEADER_TOKEN
    + r"(?:(?!<\|message\|>).){0,1200}?(?=<\|(?:start|channel|call|end|return|endoftext)\|>|\Z)",
    re.DOTALL,
)
_FIRST: Final = r"\A\s*(?:assistant)?\s*(?:to=[^\s<]*)?\s*[\w.:/-]*"
_FIRST_PART: Final = re.compile(_FIRST)
_FIRST_HEADER: Final = re.compile(_FIRST + r".{0,1200}?<\|message\|>", re.DOTALL)
_ADDRESSED: Final = re.compile(r"<\|message_model\|>\s*[\w.:/-]*")
_TAG: Final = re.compile(r"<\|(?:open|close)\|>[^<]*(?:<\|sep\|>)?")
_TAG_NAME: Final = re.compile(
    r"<\|(?:open|close)\|>(?:think|response|message|tools|call|argument|json)"
)
_BLANK: Final = re.compile(r"\s")
_FRAMES: Final = (
    *(_TOKEN, _HEADER, _HEADER_PART, _NO_BODY, _FIRST_PART, _FIRST_HEADER),
    *(_ADDRESSED, _TAG, _TAG_NAME, _BLANK),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters for reading one answer; written like the head of a block in a transcript."""

    thoughts: str = "plain"
    tools: str = "plain"
    joint: str = ""
    options: tuple[str, ...] = ()
    tail: str = ""
    calls: bool = True
    expect: Expect = "native"

    def parser(self) -> Parser:
        """Return a parser at an answer's beginning."""
        return _printing(self.joint or self.thoughts, self.joint or self.tools, self.options).scanner(
            tools=TOOLS if self.calls else (),
            calls=self.calls,
            tail=self.tail,
            new_id=_new_id,
            expect=self.expect,
            named=_NAMED,
        )  # fmt: skip

    @property
    def losses(self) -> Losses:
        """Text that may be missing where there is no call."""
        if self.joint:
            return Losses(more=_FRAMES)
        thought = _printing(self.thoughts, self.tools, self.options).thought
        assert thought is not None
        tokens = (*thought.frames, *CONTROLS)
        empties: tuple[re.Pattern[str], ...] = ()
        if self.calls and self.tools != "plain":
            tokens += known_tools().get(self.tools).noise
            empties = _empty(self.tools)
        elif self.expect == "native" and not (thought.openers or thought.closers or thought.frames):
            return Losses()
        marks = [*thought.openers, *thought.closers, *filter(None, thought.around)]
        if not marks:
            return Losses(tokens, empties=empties)
        return Losses(tokens, (*(re.compile(re.escape(mark)) for mark in marks), _BLANK), empties)

    def __str__(self) -> str:
        parts: list[str] = [f"joint={self.joint}"] if self.joint else []
        if not self.joint:
            if self.thoughts != "plain":
                parts.append(f"thoughts={'+'.join((self.thoughts, *self.options))}")
            if self.tools != "plain":
                parts.append(f"tools={self.tools}")
            parts.append(f'controls="{" ".join(CONTROLS)}"')
        if self.tail:
            parts.append(f"tail={json.dumps(self.tail, ensure_ascii=False)}")
        if not self.calls:
            parts.append("choice=none")
        if self.expect != "native":
            parts.append(f"expect={self.expect}")
        return f"parse {' '.join(parts)}"


@cache
def _printing(thoughts: str, tools: str, options: tuple[str, ...]) -> Printing:
    return Printing(Chosen(thoughts, tools, frozenset(options)), CONTROLS)


@cache
def _empty(name: str) -> tuple[re.Pattern[str], ...]:
    """Return what finds a wrapper around no calls: some models print one where they have none to make."""
    tools = known_tools().get(name)
    if not (tools.openers and tools.noise):
        return ()
    openers, noise = ("|".join(map(re.escape, marks)) for marks in (tools.openers, tools.noise))
    return (re.compile(rf"(?:{openers})(?:[\[\]\s]|none|<\|plugin\|>)*(?:{noise})"),)


def _new_id(name: str, ordinal: int) -> str:
    return f"{name}:{ordinal}"


@dataclass(frozen=True, slots=True)
class Subject:
    """One format: `marks` are all that it knows, none empty."""

    kind: Kind
    name: str
    marks: tuple[str, ...]

    def setting(self, rng: Random) -> Setting:
        """Return one way of reading this format's answers; the plainest is the most likely."""
        calls = rng.random() > 0.05
        if self.kind == "joint":
            both = known_joint().get(self.name)
            tail = rng.choice(("", "", *both.openers, *both.closers))
            return Setting(joint=self.name, tail=tail, calls=calls)
        plain = rng.random() < 0.4
        thoughts = (
            self.name
            if self.kind == "thoughts"
            else _chosen(rng, "plain", list(known_thoughts()), plain)
        )
        tools = (
            self.name if self.kind == "tools" else _chosen(rng, "plain", list(known_tools()), plain)
        )
        form = known_thoughts().get(thoughts)
        options = (
            tuple(sorted(rng.sample(_OPTIONS, rng.choice((0, 0, 1, 2))))) if form.openers else ()
        )
        tail = rng.choice(("", "", *(f"{mark}\n" for mark in form.openers), *form.closers))
        expect: Expect = "native"
        if calls and tools != "plain" and rng.random() < 0.08:
            expect = rng.choice(("json_array", "bare_arguments"))
        return Setting(thoughts, tools, options=options, tail=tail, calls=calls, expect=expect)  # fmt: skip

    def answer(self, setting: Setting, rng: Random) -> str:
        """Return an answer as a model prints it: reasoning, text, calls, and text again."""
        if self.kind == "joint":
            return "".join(rng.choice(JOINT[self.name]) for _ in range(rng.choice((1, 1, 2))))
        thought = known_thoughts().get(setting.thoughts)
        parts: list[str] = []
        if thought.closers and rng.random() < 0.7:
            opener = rng.choice((*thought.openers, "")) if thought.openers else ""
            parts += [
                opener,
                rng.choice(("Easy.", "\nFirst, a < b.\n", "")),
                rng.choice(thought.closers),
            ]
        calls = self._calls(setting, rng)
        if any(known_thoughts().get(setting.thoughts).around):
            calls = calls.join(thought.around)
        # Some formats' calls count only where nothing was said before them.
        parts += [rng.choice(_PROSE) if rng.random() < 0.5 else "", calls]
        parts += [rng.choice((*_PROSE, *CONTROLS, *self.marks)) if rng.random() < 0.5 else ""]
        return "".join(parts)

    def _calls(self, setting: Setting, rng: Random) -> str:
        name = setting.tools if setting.expect == "native" else setting.expect
        if name == "plain":
            return rng.choice(_PROSE)
        printed = [*_SPELLED.get(name, ()), *CALLS.get(name, ())]
        if not printed or rng.random() < 0.1:
            return self._assembled(rng)
        one = rng.choice(printed)
        return (
            one if isinstance(one, str) else one([_call(rng) for _ in range(rng.choice((1, 1, 2)))])
        )

    def _assembled(self, rng: Random) -> str:
        """Return markers with something between them: text that only resembles an answer."""
        between = (
            "find_museum",
            "city",
            '{"city":"x"}',
            '{"name":"list_rooms"}',
            "list_rooms()",
            "\n",
            "3",
            "",
        )
        return "".join(
            rng.choice(self.marks) + rng.choice(between) for _ in range(rng.randrange(2, 9))
        )


_SPELLED: Final = {
    name: [each.print for each in SPELLINGS if each.ours == name]
    for name in {s.ours for s in SPELLINGS}
}


def _chosen(rng: Random, usual: str, names: list[str], plain: bool) -> str:
    return usual if plain else rng.choice(names)


def _call(rng: Random) -> Called:
    tool = rng.choice(TOOLS)
    name = tool.name if rng.random() < 0.9 else "nobody.knows-it"
    properties: Mapping[str, Any] = (tool.parameters or {})["properties"]
    keys = [key for key in (*properties, "more") if rng.random() < 0.5]
    return name, {key: _value(properties.get(key, {}).get("type"), rng) for key in keys}


def _value(kind: Any, rng: Random) -> Any:
    if kind == "integer":
        return rng.choice((0, 42, -7, 9007199254740993))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        return [rng.choice(_WORDS) for _ in range(rng.randrange(3))]
    if kind == "string" or rng.random() < 0.5:
        return rng.choice(_WORDS)
    return rng.choice((None, 0.5, {"a": [1, None, {"b": "x"}]}, [], {}))


def _worded(mark: str) -> str:
    return mark.replace("NAME", "find_museum").replace("INDEX", "0")


@cache
def subjects() -> dict[str, Subject]:
    """Return every known format by its full name: `KIND:NAME`."""
    found: list[Subject] = []
    for name in known_thoughts():
        thought = known_thoughts().get(name)
        marks = (*thought.openers, *thought.closers, *thought.frames, *thought.around)
        found.append(Subject("thoughts", name, _some(*marks)))
    for name in known_tools():
        tools = known_tools().get(name)
        tagged = (
            _worded(mark) for tag in tools.tags for mark in (tag.begin, tag.end, *tag.triggers)
        )
        found.append(
            Subject(
                "tools",
                name,
                _some(
                    *tools.openers,
                    *tools.starts,
                    *tools.noise,
                    *tagged,
                    *_tags(CALLS.get(name, ())),
                ),
            )
        )
    for name in known_joint():
        both = known_joint().get(name)
        tagged = (
            _worded(mark) for tag in both.tags for mark in (tag.begin, tag.end, *tag.triggers)
        )
        found.append(
            Subject(
                "joint",
                name,
                _some(*both.openers, *both.closers, *both.stops, *tagged, *_tags(JOINT[name])),
            )
        )
    return {f"{one.kind}:{one.name}": one for one in found}


_A_TAG: Final = re.compile(r"\]<\]\w+\[>\[<[^<>]*>|<[^<>\s]+>|<[^<>]+>|\[/?[A-Z_]+\]")


def _tags(answers: tuple[str, ...]) -> list[str]:
    """Return the tags that stand in answers: closers and separators that no declaration names."""
    return [tag for answer in answers for tag in _A_TAG.findall(answer)]


def _some(*marks: str) -> tuple[str, ...]:
    return tuple(sorted({*marks, *CONTROLS} - {""}))
