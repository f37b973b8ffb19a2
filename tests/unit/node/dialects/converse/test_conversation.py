"""Conversations at Bedrock: turns, calls, thoughts and media as the messages of a body."""

from typing import Any

import msgspec
import pytest

from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import (
    MediaPart,
    TextPart,
    ToolCall,
    ToolChoice,
    Turn,
    TurnBlock,
)
from smg_node.dialects.converse.conversation import NO_OUTPUT, NO_RESULT
from smg_node.dialects.converse.dialect import CLAUDE as CLAUDE_QUIRK
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.converse_bodies import (
    CLAUDE,
    NOVA,
    SAID,
    TOOL,
    USER,
    call_block,
    fields,
    messages,
    result_block,
)
from support.providers.converse_requests import PNG


def test_systems_come_first_and_neighbours_are_joined() -> None:
    parts = (TextPart("a"), TextPart(" "), TextPart("b"))
    found = fields(
        Turn("system", "One."),
        Turn("developer", "Two."),
        Turn("user", parts),
        Turn("user", ""),
        Turn("system", "Three."),
        Turn("user", "c"),
        Turn("assistant", "d"),
        Turn("assistant", "e"),
        USER,
    )
    assert found == {
        "system": [{"text": "One."}, {"text": "Two."}, {"text": "Three."}],
        "messages": [
            {"role": "user", "content": [{"text": "a"}, {"text": "b"}, {"text": "c"}]},
            {"role": "assistant", "content": [{"text": "d"}, {"text": "e"}]},
            SAID,
        ],
    }


def test_claude_hears_a_later_system_where_it_was_said() -> None:
    turns = (Turn("system", "One."), USER, Turn("system", "Two."), USER)
    assert fields(*turns, options=CLAUDE, systems_stay=True) == {
        "system": [{"text": "One."}],
        "messages": [SAID, {"role": "system", "content": [{"text": "Two."}]}, SAID],
    }
    first = WriterOptions(CLAUDE.model, "anthropic", quirks=frozenset({"systems_first"}))
    for options in (NOVA, first):
        found = fields(*turns, options=options, systems_stay=True)
        assert found["system"] == [{"text": "One."}, {"text": "Two."}]


def test_a_system_alone_is_what_the_user_says() -> None:
    assert fields(Turn("system", "Hello")) == {"messages": [SAID]}


def test_calls_and_their_results_in_any_order() -> None:
    calls = (ToolCall("a", "look_up", '{"q":1}'), ToolCall("b", "look_up", ""))
    found = messages(
        USER,
        Turn("assistant", "I look.", calls=calls),
        Turn("tool", "second", answers_call="b"),
        Turn("tool", (TextPart("first"), MediaPart("image", PNG, "x")), answers_call="a"),
        Turn("user", "And?"),
        tools=(TOOL,),
    )
    image = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
    assert found[1]["content"] == [{"text": "I look."}, call_block("a", q=1), call_block("b")]
    assert found[2]["content"] == [
        result_block("a", {"text": "first"}, image),
        result_block("b", {"text": "second"}),
        {"text": "And?"},
    ]


@pytest.mark.parametrize(
    ("turn", "block"),
    [
        (Turn("tool", "no", answers_call="a", extra={"is_error": True}), ["no", "error"]),
        (Turn("tool", " ", answers_call="a"), [NO_OUTPUT, None]),
        (Turn("function", "x", name="look_up"), ["x", None]),
        (Turn("user", "x"), [NO_RESULT, "error"]),
        (Turn("tool", "x", answers_call="other"), [NO_RESULT, "error"]),
    ],
)
def test_every_call_has_a_result(turn: Turn, block: list[str | None]) -> None:
    answer = Turn("assistant", None, calls=(ToolCall("a", "look_up", "{}"),))
    found = messages(USER, answer, turn, tools=(TOOL,))[2]["content"][0]["toolResult"]
    assert [found["content"][0]["text"], found.get("status")] == block


def test_ids_and_names_that_are_none_there_are_written_anew() -> None:
    calls = (
        ToolCall("", "a.b", "{}"),
        ToolCall("same", "look_up", "{}"),
        ToolCall("same", "look_up", "{}"),
        ToolCall("i" * 65, "n" * 65, "{}"),
    )
    results = [Turn("tool", str(at), answers_call=one.call_id) for at, one in enumerate(calls)]
    found = messages(USER, Turn("assistant", None, calls=calls), *results, tools=(TOOL,))
    used = [block["toolUse"] for block in found[1]["content"]]
    told = [block["toolResult"] for block in found[2]["content"]]
    assert [one["name"] for one in used] == ["a_b", "look_up", "look_up", "n" * 64]
    assert len({one["toolUseId"] for one in used}) == 4
    assert used[1]["toolUseId"] == "same"
    assert [one["toolUseId"] for one in told] == [one["toolUseId"] for one in used]
    assert [one["content"] for one in told] == [[{"text": str(at)}] for at in range(4)]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("[1]", {"INVALID_JSON": "[1]"}),
        ('{"cut":', {"INVALID_JSON": '{"cut":'}),
        ('"{\\"a\\":1}"', {"a": 1}),
    ],
)
def test_arguments_are_an_object_whatever_they_were(arguments: str, given: Any) -> None:
    answer = Turn("assistant", None, calls=(ToolCall("a", "look_up", arguments),))
    assert messages(USER, answer, USER, tools=(TOOL,))[1]["content"] == [call_block("a", **given)]


@pytest.mark.parametrize(
    ("options", "thoughts"),
    [
        (
            CLAUDE,
            [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
                {"reasoningContent": {"redactedContent": "RXZRQg=="}},
            ],
        ),
        (NOVA, [{"reasoningContent": {"redactedContent": "YQ=="}}]),
    ],
)
def test_thoughts_go_back_to_their_issuer_only(options: WriterOptions, thoughts: Any) -> None:
    blocks = (
        TurnBlock("reasoning", "Hm.", opaque=(Opaque("anthropic", SIGNATURE, "s"),)),
        TurnBlock("reasoning", "", opaque=(Opaque("anthropic", REDACTED, "EvQB"),)),
        TurnBlock("reasoning", "", opaque=(Opaque("bedrock", REDACTED, "YQ=="),)),
        TurnBlock("reasoning", "told to nobody"),
        TurnBlock("text", "So."),
        TurnBlock("call", "{}", "look_up", "a"),
        TurnBlock("reasoning", "", opaque=(Opaque(options.issuer, SIGNATURE, "last"),)),
    )
    found = messages(
        USER, Turn("assistant", None, blocks=blocks), USER, tools=(TOOL,), options=options
    )
    assert found[1]["content"] == [*thoughts, {"text": "So."}, call_block("a")]


def test_where_no_tool_may_be_called_earlier_calls_are_told_as_text() -> None:
    blocks = (
        TurnBlock("reasoning", "Hm.", opaque=(Opaque("anthropic", SIGNATURE, "s"),)),
        TurnBlock("call", '{"q":1}', "look_up", "a"),
        TurnBlock("call", "", "look_up", "b"),
    )
    turns = (
        USER,
        Turn("assistant", None, blocks=blocks),
        Turn("tool", "found", answers_call="a"),
        Turn("user", "And?"),
    )
    expected = [
        SAID,
        {
            "role": "assistant",
            "content": [{"text": '[call of look_up: {"q":1}]'}, {"text": "[call of look_up: {}]"}],
        },
        {
            "role": "user",
            "content": [
                {"text": "[result of look_up]"},
                {"text": "found"},
                {"text": "[error of look_up]"},
                {"text": NO_RESULT},
                {"text": "And?"},
            ],
        },
    ]
    assert fields(*turns, options=CLAUDE) == {"messages": expected}
    none = ToolChoice("none")
    assert fields(*turns, options=CLAUDE, tools=(TOOL,), choice=none) == {"messages": expected}


def test_the_answer_goes_on_from_given_text() -> None:
    turns = (USER, Turn("assistant", "So it is \n"))
    assert messages(*turns, continue_final_message=True)[1] == {
        "role": "assistant",
        "content": [{"text": "So it is"}],
    }


@pytest.mark.parametrize(
    ("kind", "source", "block"),
    [
        ("image", "data:image/jpg;base64,AAAA", {"image": {"format": "jpeg"}}),
        ("image", "data:image/WEBP;base64,AAAA", {"image": {"format": "webp"}}),
        (
            "file",
            "data:application/pdf;base64,AAAA",
            {"document": {"format": "pdf", "name": "document 1"}},
        ),
        (
            "file",
            "data:text/x-python;charset=utf-8;base64,AAAA",
            {"document": {"format": "txt", "name": "document 1"}},
        ),
        ("video", "data:video/3gpp;base64,AAAA", {"video": {"format": "three_gp"}}),
        ("audio", "data:audio/mpeg;base64,AAAA", {"audio": {"format": "mp3"}}),
    ],
)
def test_media_are_bytes_of_a_format(kind: Any, source: str, block: dict[str, Any]) -> None:
    part = MediaPart(kind, source, "messages[0].content[0]")
    [[name, said]] = block.items()
    expected = {name: {**said, "source": {"bytes": "AAAA"}}}
    assert messages(Turn("user", (part,)))[0]["content"] == [expected]


def test_documents_have_names_of_their_own() -> None:
    part = MediaPart("file", "data:text/csv;base64,AAAA", "x")
    found = messages(Turn("user", (part, part)), Turn("assistant", "x"), Turn("user", (part,)))
    names = [block["document"]["name"] for at in (0, 2) for block in found[at]["content"]]
    assert names == ["document 1", "document 2", "document 3"]


def test_a_model_that_is_claude_by_a_quirk_gets_its_thoughts_back() -> None:
    options = WriterOptions("arn:aws:bedrock:r:1:inference-profile/x", "bedrock")
    signed = TurnBlock("reasoning", "Hm.", opaque=(Opaque("anthropic", SIGNATURE, "s"),))
    answer = Turn("assistant", None, blocks=(signed, TurnBlock("text", "So.")))
    named = msgspec.structs.replace(options, quirks=frozenset({CLAUDE_QUIRK}))
    found = [messages(USER, answer, USER, options=one)[1]["content"] for one in (options, named)]
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}
    assert found == [[{"text": "So."}], [thought, {"text": "So."}]]
