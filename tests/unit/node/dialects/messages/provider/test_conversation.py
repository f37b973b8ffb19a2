"""Conversation of a vendor's Messages: turns, results, signed thoughts and media in their places."""

from typing import Any

import pytest

from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import (
    MediaPart,
    TextPart,
    ToolCall,
    Turn,
    TurnBlock,
)
from smg_node.dialects.messages.provider.conversation import NO_RESULT
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.messages_wishes import PICTURE
from support.providers.written_messages import (
    SIGNED,
    USER,
    asked,
    calls,
    messages,
    refused,
    text,
    written,
)

# ── Turns ────────────────────────────────────────────────────────────────────


def test_neighbours_of_one_role_are_one_message_and_what_says_nothing_is_left_out() -> None:
    assert messages(
        Turn("user", "A"),
        Turn("user", (TextPart("B"), TextPart(" "))),
        Turn("assistant", ""),
        Turn("user", "\n"),
        Turn("assistant", "C"),
        Turn("assistant", "D"),
        Turn("user", "E"),
    ) == [
        {"role": "user", "content": [text("A"), text("B")]},
        {"role": "assistant", "content": [text("C"), text("D")]},
        {"role": "user", "content": [text("E")]},
    ]


def test_systems_come_first_unless_they_stay() -> None:
    turns = (Turn("system", "S"), Turn("developer", "D"), USER, Turn("system", "T"), USER)
    fields, _ = written(asked(*turns))
    assert fields["system"] == [text("S"), text("D"), text("T")]
    assert fields["messages"] == [{"role": "user", "content": [text("Hi"), text("Hi")]}]
    fields, _ = written(asked(*turns, systems_stay=True))
    assert fields["system"] == [text("S"), text("D")]
    assert fields["messages"] == [
        {"role": "user", "content": [text("Hi")]},
        {"role": "system", "content": [text("T")]},
        {"role": "user", "content": [text("Hi")]},
    ]
    first = WriterOptions("m", "anthropic", quirks=frozenset({"systems_first"}))
    assert len(written(asked(*turns, systems_stay=True), first)[0]["system"]) == 3


def test_a_system_prompt_alone_is_what_the_user_says() -> None:
    fields, _ = written(asked(Turn("system", "S")))
    assert "system" not in fields
    assert fields["messages"] == [{"role": "user", "content": [text("S")]}]
    assert refused(asked(Turn("user", " "))) == "messages"


def test_results_come_first_in_the_order_of_their_calls_and_a_lost_one_is_told() -> None:
    found = messages(
        USER,
        calls(("a", "f"), ("b", "f"), ("c", "f")),
        Turn("user", "Wait"),
        Turn("tool", "3", answers_call="c", extra={"is_error": True}),
        Turn("system", "S"),
        Turn("tool", "", answers_call="a"),
        Turn("user", "Go"),
        systems_stay=True,
    )
    assert found[2:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a"},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "is_error": True,
                    "content": NO_RESULT,
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [text("3")],
                    "is_error": True,
                },
                text("Wait"),
            ],
        },
        {"role": "system", "content": [text("S")]},
        {"role": "user", "content": [text("Go")]},
    ]


def test_an_assistant_that_goes_on_without_results_has_them_told_as_lost() -> None:
    found = messages(USER, calls(("a", "f")), Turn("assistant", "So"), USER)
    assert [message["role"] for message in found] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert found[2]["content"][0]["content"] == NO_RESULT


def test_a_result_that_no_call_waits_for_is_said_by_the_user() -> None:
    found = messages(
        USER,
        calls(("a", "f")),
        Turn("tool", "1", answers_call="a"),
        Turn("tool", "2", answers_call="z"),
    )
    assert found[2]["content"][1:] == [text("2")]


def test_a_result_of_the_old_form_answers_the_call_of_its_name() -> None:
    found = messages(USER, calls(("a", "f"), ("b", "g")), Turn("function", "2", name="g"))
    assert found[2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": "b",
        "content": [text("2")],
    }


def test_ids_that_are_none_or_come_again_are_written_anew_in_call_and_result() -> None:
    found = messages(
        USER,
        calls(("call_0", "f")),
        Turn("tool", "1", answers_call="call_0"),
        calls(("call_0", "f"), ("functions.f:1", "f"), ("", "f")),
        Turn("tool", "2", answers_call="call_0"),
        Turn("tool", "3", answers_call="functions.f:1"),
        Turn("tool", "4", answers_call=""),
    )
    ids = [block["id"] for block in (*found[1]["content"], *found[3]["content"])]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 4
    assert all(one.startswith("toolu_") for one in ids[1:])
    assert [one["tool_use_id"] for one in found[4]["content"]] == ids[1:]
    assert [one["content"] for one in found[4]["content"]] == [
        [text("2")],
        [text("3")],
        [text("4")],
    ]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": ', {"INVALID_JSON": '{"a": '}),
        ("[1]", {"INVALID_JSON": "[1]"}),
    ],
)
def test_arguments_are_an_object_whatever_the_model_printed(
    arguments: str, given: dict[str, Any]
) -> None:
    turn = Turn("assistant", None, calls=(ToolCall("a", "f", arguments),))
    assert messages(USER, turn)[1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "f", "input": given}
    ]


# ── Opaque state ─────────────────────────────────────────────────────────────


def test_signed_thoughts_go_back_unchanged_at_their_places_and_others_do_not() -> None:
    turn = Turn(
        "assistant",
        None,
        blocks=(
            TurnBlock("reasoning", " I think\n", opaque=(SIGNED,)),
            TurnBlock("reasoning", "", opaque=(Opaque("anthropic", "redacted", "xyz"),)),
            TurnBlock("reasoning", "unsigned"),
            TurnBlock("reasoning", "strange", opaque=(Opaque("google", "signature", "g"),)),
            TurnBlock("text", "So"),
            TurnBlock("reasoning", "", opaque=(SIGNED,)),
            TurnBlock("call", "{}", "f", "a", opaque=(Opaque("google", "signature", "g"),)),
        ),
    )
    assert messages(USER, turn)[1]["content"] == [
        {"type": "thinking", "thinking": " I think\n", "signature": SIGNED.data},
        {"type": "redacted_thinking", "data": "xyz"},
        text("So"),
        {"type": "thinking", "thinking": "", "signature": SIGNED.data},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]


def test_thoughts_at_the_end_of_a_turn_are_left_out() -> None:
    turn = Turn(
        "assistant",
        None,
        blocks=(TurnBlock("text", "A"), TurnBlock("reasoning", "", opaque=(SIGNED,))),
    )
    assert messages(USER, turn, USER)[1]["content"] == [text("A")]
    alone = Turn("assistant", None, blocks=(TurnBlock("reasoning", "x", opaque=(SIGNED,)),))
    assert messages(USER, alone, USER) == [{"role": "user", "content": [text("Hi"), text("Hi")]}]


# ── Media ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "source", "block"),
    [
        (
            "image",
            PICTURE,
            ("image", {"type": "base64", "media_type": "image/png", "data": "aGk="}),
        ),
        (
            "image",
            "data:image/jpg;base64,aGk=",
            ("image", {"type": "base64", "media_type": "image/jpeg", "data": "aGk="}),
        ),
        ("image", "https://x.test/a", ("image", {"type": "url", "url": "https://x.test/a"})),
        (
            "file",
            "data:application/pdf;base64,aGk=",
            ("document", {"type": "base64", "media_type": "application/pdf", "data": "aGk="}),
        ),
        (
            "file",
            "data:text/csv;charset=utf-8;base64,aGk=",
            ("document", {"type": "text", "media_type": "text/plain", "data": "hi"}),
        ),
        (
            "file",
            "http://x.test/a.pdf",
            ("document", {"type": "url", "url": "http://x.test/a.pdf"}),
        ),
    ],
)
def test_media_are_blocks(kind: Any, source: str, block: tuple[str, dict[str, Any]]) -> None:
    turn = Turn("user", (TextPart("See"), MediaPart(kind, source, "messages[0]")))
    assert messages(turn)[0]["content"] == [text("See"), {"type": block[0], "source": block[1]}]


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("image", ""),
        ("image", "file:///etc/passwd"),
        ("image", "data:image/tiff;base64,aGk="),
        ("image", "data:image/png,hi"),
        ("file", "data:application/zip;base64,aGk="),
        ("file", "data:text/plain;base64,!"),
        ("audio", "data:audio/wav;base64,aGk="),
        ("video", "https://x.test/a.mp4"),
    ],
)
def test_other_media_are_refused_with_their_path(kind: Any, source: str) -> None:
    turn = Turn("user", (MediaPart(kind, source, "messages[0].content[1]"),))
    assert refused(asked(turn)) == "messages[0].content[1]"


def test_a_system_message_may_have_no_pictures() -> None:
    turn = Turn("system", (TextPart("See"), MediaPart("image", PICTURE, "messages[0].content[1]")))
    assert refused(asked(turn, USER)) == "messages[0].content[1]"


def test_a_result_may_have_pictures() -> None:
    result = Turn("tool", (TextPart("See"), MediaPart("image", PICTURE, "x")), answers_call="a")
    found = messages(USER, calls(("a", "f")), result)[2]["content"][0]["content"]
    assert [block["type"] for block in found] == ["text", "image"]
