"""The laws of reading answers, over every format and every transcript: nothing lost, nothing early, nothing slow.

That no cutting changes what is said is the first of them; tests/unit/node/parsers holds it over the transcripts,
here it is held over garbage.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.pieces import Call, Piece
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from support.answers.parser_cases import (
    FOLDER,
    Case,
    case_of,
    cases,
    in_chunks,
    joined,
    pieces_of,
    shown,
)
from support.tools.example_counts import example_count

TOOLS: Final = sorted(known_tools())
THOUGHTS: Final = sorted(known_thoughts())
JOINT: Final = sorted(known_joint())
FILES: Final = sorted(path.stem for path in FOLDER.glob("*.txt"))
CONTROL: Final = "<|control|>"
PROSE: Final = (
    "é",
    "Ω",
    "9",
    "𝄞",
    "Q ",
    "\n",
    " ",
    "a < b",
    "x<<2",
    "it's",
    "[1] ",
    "{",
    '"',
    "}, ",
)
"""What people write; the first four stand in no marker and no call."""


def marks_of(*, thoughts: bool = True) -> list[str]:
    """Return the marks of all formats."""
    marks: set[str] = set()
    for name in TOOLS:
        tools = known_tools().get(name)
        marks.update((*tools.openers, *tools.starts, *tools.noise))
    if thoughts:
        for name in THOUGHTS:
            thought = known_thoughts().get(name)
            marks.update((*thought.openers, *thought.closers, *thought.frames, *thought.around))
        for name in JOINT:
            joint = known_joint().get(name)
            marks.update((*joint.openers, *joint.closers, *joint.stops))
    return sorted(marks - {""})


MARKS: Final = marks_of()
TOOL_MARKS: Final = marks_of(thoughts=False)
BROKEN: Final = sorted({mark[:end] for mark in MARKS for end in (1, 2, len(mark) - 1)} - {""})
SYNTAX: Final = (
    *"{}[]():,;='\"\\>",
    *(
        "```",
        "</",
        "json",
        "\\u00",
        "find_museum",
        "list_rooms",
        "nobody",
        "city",
        "max",
        "3",
        "true",
    ),
    *("name", "arguments", "parameters", "call:", "function", "to=", '"name":', '"x"', "null"),
    *("<function=", "<parameter=", "</parameter>", "</function>", "<invoke", ' string="true"'),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", '{"name":"list_rooms"}'),
    *('(city="x")', "list_rooms()", '{"city":"x"}', '<|"|>', "<escape>"),
    *("<|message|>", "<|channel|>", "analysis", "final", "commentary", "thought"),
)
"""What calls and frames are made of between their marks."""


def read(case: Case) -> list[Piece]:
    """Return what is said of an answer, the same in one go, by characters and by some."""
    whole = pieces_of(case, [case.text])
    for size in (1, 3, 17):
        assert pieces_of(case, in_chunks(case.text, size)) == whole, f"chunks of {size}"
    return whole


def said(pieces: Sequence[Piece]) -> str:
    """Return all that is text of some kind."""
    return "".join("" if isinstance(piece, Call) else piece.text for piece in pieces)


def soup(*atoms: Sequence[str]) -> st.SearchStrategy[str]:
    """Return strategies of texts put together from `atoms`, each group as likely as another."""
    groups = st.one_of([st.sampled_from(tuple(group)) for group in atoms])
    return st.lists(groups, max_size=14).map("".join)


GARBAGE: Final = soup(MARKS, BROKEN, SYNTAX, PROSE)


# ── Total, and the same in every cutting ─────────────────────────────────────


@settings(max_examples=example_count(600))
@given(
    st.sampled_from(TOOLS),
    st.sampled_from(["", *THOUGHTS, "think+implicit+trim", "think+line", "think+interleaved"]),
    st.sampled_from(["", "<think>", "</think>"]),
    GARBAGE,
)
def test_any_text_has_user_text_and_the_same_however_it_is_cut(
    tools: str, thoughts: str, tail: str, text: str
) -> None:
    given_ = {
        "tools": tools,
        "thoughts": thoughts,
        "tail": tail,
        "controls": CONTROL,
        "newline": "",
    }
    case = case_of(given_, text)
    for end in (len(text), len(text) // 2):
        read(replace(case, text=text[:end]))


@settings(max_examples=example_count(400))
@given(st.sampled_from(JOINT), st.sampled_from(["auto", "none"]), GARBAGE)
def test_any_text_has_user_text_in_a_joint_format_too(joint: str, choice: str, text: str) -> None:
    case = case_of({"joint": joint, "choice": choice, "newline": ""}, text)
    for end in (len(text), len(text) // 2):
        read(replace(case, text=text[:end]))


@pytest.mark.parametrize("name", FILES)
def test_an_answer_that_is_damaged_anywhere_is_read_the_same_however_it_is_cut(name: str) -> None:
    for case in cases(name):
        size = len(case.text)
        for at in range(1, size, max(1, size // 8)):
            cut_out = case.text[:at] + case.text[at + 1 :]
            put_in = f"{case.text[:at]}\\<{case.text[at:]}"
            for text in (cut_out, put_in):
                damaged = replace(case, text=text)
                whole = pieces_of(damaged, [text])
                assert pieces_of(damaged, text) == whole, f"{case.label}: {text!r}"


DEEP: Final = ("[", "{", "(", '{"a":', '{"function":', "{'a':", "f(a=[", "<item>", "\\", "'")


@pytest.mark.parametrize("name", [*TOOLS, *JOINT])
def test_nothing_is_too_deep_for_any_format(name: str) -> None:
    kind = "tools" if name in TOOLS else "joint"
    form = known_tools().get(name) if name in TOOLS else None
    openers = (*form.openers, *form.starts) if form else known_joint().get(name).openers
    for before in (*openers, "".join(openers), ""):
        for deep in DEEP:
            for mark in ("", "list_rooms(", "call:f{a:", '{"name":"f","arguments":', "f{", "f>"):
                text = before + mark + deep * 1200
                case = case_of({kind: name}, text)
                assert pieces_of(case, [text]) == pieces_of(case, in_chunks(text, 1000))


# ── Nothing lost ─────────────────────────────────────────────────────────────


@settings(max_examples=example_count(600))
@given(st.sampled_from(TOOLS), soup(TOOL_MARKS, BROKEN, PROSE, SYNTAX, [CONTROL]))
def test_an_answer_without_a_call_comes_back_less_its_tokens(tools: str, text: str) -> None:
    pieces = read(case_of({"tools": tools, "controls": CONTROL, "newline": ""}, text))
    if not any(isinstance(piece, Call) for piece in pieces):
        dropped = sorted({*known_tools().get(tools).noise, CONTROL}, key=len, reverse=True)
        assert said(pieces) == re.sub("|".join(map(re.escape, dropped)), "", text)


@settings(max_examples=example_count(400))
@given(st.sampled_from(THOUGHTS), st.sampled_from(["", "<think>"]), GARBAGE)
def test_no_thought_loses_or_turns_round_what_is_no_marker(
    thoughts: str, tail: str, text: str
) -> None:
    pieces = read(case_of({"thoughts": thoughts, "tail": tail, "newline": ""}, text))
    assert re.findall("[éΩ9𝄞]", said(pieces)) == re.findall("[éΩ9𝄞]", text)


# ── No half markers, nothing held that need not be ───────────────────────────


@pytest.mark.parametrize("name", FILES)
def test_what_was_said_is_never_taken_back(name: str) -> None:
    for case in cases(name):
        whole = pieces_of(case, [case.text])
        scanner = case.scanner()
        pieces: list[Piece] = []
        for character in case.text:
            pieces += scanner.feed(character)
            pieces = joined(pieces)
            begun = len(pieces) - 1
            assert pieces[:begun] == whole[: max(begun, 0)], f"{case.label}: {shown(pieces)}"
            if pieces:
                last, final = pieces[-1], whole[begun]
                assert type(last) is type(final), f"{case.label}: {shown(pieces)}"
                assert said([final]).startswith(said([last])), f"{case.label}: {shown(pieces)}"
        assert joined([*pieces, *scanner.finish()]) == whole


def _prose(draw: st.DrawFn) -> str:
    firsts = sorted({mark[0] for mark in MARKS})
    return "Hm " + draw(st.text(alphabet=[*"ab é'9,.", *firsts], max_size=60))


PROSE_TEXT: Final = st.composite(_prose)()


@settings(max_examples=example_count(400))
@given(st.sampled_from(TOOLS), st.sampled_from(THOUGHTS), PROSE_TEXT)
def test_of_prose_no_more_is_held_than_could_be_a_marker(
    tools: str, thoughts: str, text: str
) -> None:
    tail = next(iter(known_thoughts().get(thoughts).openers), "")
    marks = [*known_tools().get(tools).openers, *known_tools().get(tools).noise]
    thought = known_thoughts().get(thoughts)
    marks += [*thought.openers, *thought.closers, *thought.frames, *thought.around]
    longest = max(map(len, marks)) + 1
    for start in ("", tail):
        scanner = case_of({"tools": tools, "thoughts": thoughts, "tail": start}, "").scanner()
        out = 0
        for fed, character in enumerate(text, 1):
            out += len(said(scanner.feed(character)))
            assert fed - out < longest, f"{fed - out} of {text[:fed]!r} are held"


# ── Linear ───────────────────────────────────────────────────────────────────


def seconds(case: Case, text: str, size: int) -> float:
    """Return the processor time that reading `text` in chunks of `size` takes."""
    chunks = in_chunks(text, size)
    scanner = case.scanner()
    began = time.process_time()
    for chunk in chunks:
        scanner.feed(chunk)
    scanner.finish()
    return time.process_time() - began


def long_texts(name: str) -> Iterator[tuple[Case, Callable[[int], str]]]:
    """Yield the longest answer of a transcript over and over, and one whose middle does not end."""
    longest = max(cases(name), key=lambda case: len(case.text))
    text = longest.text
    yield longest, lambda size: text * (size // len(text))
    middle = len(text) * 3 // 5
    yield longest, lambda size: text[:middle] + "x" * size
    yield longest, lambda size: text[:middle] + "\\n' <" * (size // 5)
    mark = max((mark for mark in MARKS if mark in text), key=len, default="<")
    yield longest, lambda size: mark * (size // len(mark))


@pytest.mark.parametrize("name", FILES)
def test_four_times_the_text_takes_four_times_as_long(name: str) -> None:
    small = 12_000
    for number, (case, text_of) in enumerate(long_texts(name)):
        ratios: list[float] = []
        # A machine that does other things besides may take long once; one that squares does so always.
        while not ratios or (min(ratios) > 8 and len(ratios) < 4):
            once = seconds(case, text_of(small), 3)
            ratios.append(seconds(case, text_of(4 * small), 3) / max(once, 1e-3))
        assert min(ratios) <= 8, f"text {number} of {case.label}: {ratios}"
