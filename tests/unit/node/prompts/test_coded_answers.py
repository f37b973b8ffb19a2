"""What a family's prompts show of an earlier answer is what its parser reads in one."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.core.generation.request import ChatPrompt, Thinking, Tool, ToolCall, Turn
from smg_node.parsers.reading.answer_grammar import AnswerFormat
from smg_node.parsers.reading.format import FormatRequest, JointFormat, start_of
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from support.answers.parser_cases import joined
from support.models.coded_prompts import FAMILIES, MUSEUM, NOW, ROOMS, coded

READ: dict[str, tuple[str, str]] = {
    "gpt_oss": ("harmony", ""),
    "kimi_k3": ("kimi_k3", ""),
    "inkling": ("inkling", ""),
    "deepseek_v32": ("think", "dsml"),
    "deepseek_v4": ("think", "dsml_v4"),
}


LAYOUT = {"deepseek_v32": "\n\n", "deepseek_v4": "\n\n"}
"""What a family prints between text and a call: no parser can tell it from the text's own end."""


def read_back(family: str, prompt: str, answer: str, tools: Sequence[Tool]) -> list[Piece]:
    """Return what the family's parser reads in an answer to a prompt."""
    name, calls = READ[family]
    form: AnswerFormat | JointFormat
    if calls:
        thought = known_thoughts().get(name)
        form = AnswerFormat(thought, [known_tools().get(calls)], ("<｜end▁of▁sentence｜>",))
        marks = thought.openers, thought.closers
    else:
        form = known_joint().get(name)
        marks = form.openers, form.closers
    scanner = Scanner(
        form,
        asked=FormatRequest({tool.name: tool for tool in tools}),
        start=start_of(prompt, *marks),
        new_id=lambda called, ordinal: f"{called}:{ordinal}",
    )
    said: list[Piece] = []
    for character in answer:
        said += scanner.feed(character)
    return joined([*said, *scanner.finish()])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", [None, "Let me look: a < b."])
def test_a_turn_with_thoughts_and_calls_is_read_back_as_it_was(
    family: str, text: str | None
) -> None:
    arguments = {
        "city": 'Zürich "&" </x> <|call',
        "max": 9007199254740993,
        "open": True,
        "note": None,
        "tags": ["a", {"b": [1, 2.5]}],
    }
    calls = (
        ToolCall("x", "find_museum", json.dumps(arguments, ensure_ascii=False)),
        ToolCall("y", "list_rooms", "{}"),
    )
    turn = Turn("assistant", text, reasoning="Two things.\nFirst", calls=calls)
    prompt = ChatPrompt(
        (Turn("user", "Museums?"),), tools=(MUSEUM, ROOMS), thinking=Thinking(effort="high")
    )
    ours = coded(family)
    asked = ours.render(prompt, now=NOW)
    whole = replace(prompt, turns=(*prompt.turns, turn), add_generation_prompt=False)
    answered = ours.render(whole, now=NOW)
    assert answered.startswith(asked)
    pieces = read_back(family, asked, answered[len(asked) :], (MUSEUM, ROOMS))
    shown: list[Any] = [
        (piece.name, piece.call_id)
        if isinstance(piece, Call)
        else (type(piece), json.loads(piece.text) if isinstance(piece, Arguments) else piece.text)
        for piece in pieces
    ]
    assert shown == [
        (Reasoning, "Two things.\nFirst"),
        *([(Text, text + LAYOUT.get(family, ""))] if text else []),
        ("find_museum", "find_museum:0"),
        (Arguments, arguments),
        ("list_rooms", "list_rooms:1"),
        (Arguments, {}),
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_answer_is_read_back_as_it_was(family: str) -> None:
    ours = coded(family)
    prompt = ChatPrompt((Turn("user", "Museums?"),), thinking=Thinking(effort="high"))
    asked = ours.render(prompt, now=NOW)
    turn = Turn("assistant", "Two.\n\nOr three.", reasoning="Count.")
    whole = replace(prompt, turns=(*prompt.turns, turn), add_generation_prompt=False)
    answered = ours.render(whole, now=NOW)
    pieces = read_back(family, asked, answered[len(asked) :], ())
    # What gpt-oss thought before it answered is never shown to it again.
    thought = [] if family == "gpt_oss" else [Reasoning("Count.")]
    assert pieces == [*thought, Text("Two.\n\nOr three.")]
