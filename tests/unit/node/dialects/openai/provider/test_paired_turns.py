"""Paired turns: every call has its result right behind it, under ids that differ."""

from typing import Any

import pytest

from smg_node.core.generation.request import MediaPart, TextPart, ToolCall, Turn, TurnBlock
from smg_node.dialects.openai.provider.paired_turns import NO_RESULT, paired_turns, text_in

ASKED = Turn("user", "Hi")


def called(*ids: str, name: str = "f") -> Turn:
    return Turn("assistant", None, calls=tuple(ToolCall(one, name, "{}") for one in ids))


def result(call_id: str | None, content: Any = "1", name: str | None = None) -> Turn:
    return Turn("tool" if name is None else "function", content, name=name, answers_call=call_id)


def told(*turns: Turn) -> list[tuple[Any, ...]]:
    """Return of each turn its role, what it says, and the ids of its calls or of the call it answers."""
    return [
        (turn.role, turn.content, *(call.call_id for call in turn.calls))
        if turn.answers_call is None
        else (turn.role, turn.content, turn.answers_call)
        for turn in paired_turns(turns)
    ]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([ASKED], [("user", "Hi")]),
        (
            [called("a", "b"), result("b", "2"), result("a"), ASKED],
            [("assistant", None, "a", "b"), ("tool", "1", "a"), ("tool", "2", "b"), ("user", "Hi")],
        ),
        (
            [called("a"), ASKED],
            [("assistant", None, "a"), ("tool", NO_RESULT, "a"), ("user", "Hi")],
        ),
        ([called("a")], [("assistant", None, "a"), ("tool", NO_RESULT, "a")]),
        ([result("a"), ASKED], [("user", "1"), ("user", "Hi")]),
        ([result("a", None)], [("user", "(a result without content)")]),
        (
            [called("a"), result("x", "?"), result("a")],
            [("assistant", None, "a"), ("tool", "1", "a"), ("user", "?")],
        ),
        (
            [called(""), result(None, "1", "f")],
            [("assistant", None, "call_0"), ("tool", "1", "call_0")],
        ),
        (
            [called("a"), result("a"), called("a"), result("a", "2")],
            [
                ("assistant", None, "a"),
                ("tool", "1", "a"),
                ("assistant", None, "a_1"),
                ("tool", "2", "a_1"),
            ],
        ),
        (
            [called("x" * 65), result("x" * 65)],
            [("assistant", None, "x" * 48 + "_0"), ("tool", "1", "x" * 48 + "_0")],
        ),
    ],
)
def test_every_call_has_its_result(turns: list[Turn], expected: list[tuple[Any, ...]]) -> None:
    assert told(*turns) == expected


def test_blocks_and_calls_of_a_turn_have_the_same_ids() -> None:
    blocks = (TurnBlock("text", "So"), TurnBlock("call", "{}", "f", "a"))
    turn = Turn("assistant", "So", calls=(ToolCall("a", "f", "{}"),), blocks=blocks)
    again = list(paired_turns([turn, result("a"), turn, result("a")]))[2]
    assert again.blocks == (TurnBlock("text", "So"), TurnBlock("call", "{}", "f", "a_1"))
    assert again.calls == (ToolCall("a_1", "f", "{}"),)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("Hi", "Hi"),
        ((TextPart("H"), MediaPart("image", "x", "w"), TextPart("i")), "Hi"),
    ],
)
def test_the_text_of_a_content_is_that_of_its_parts(content: Any, text: str) -> None:
    assert text_in(content) == text
