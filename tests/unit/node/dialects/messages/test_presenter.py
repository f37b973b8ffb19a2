"""Streams and whole answers of Messages, judged by the official client and byte by byte."""

import re

import pytest

from smg_node.core.generation.events import Begin, BlockKind, FinishReason
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.view import MessagesView
from support.answers.messages_answers import (
    BEGIN,
    ID,
    SEALS,
    body,
    frames,
    presenter,
    said,
    streamed,
    whole,
)
from support.clients import messages_judge as judge
from support.clients.messages_judge import agreed_content


def test_the_frames_of_a_text() -> None:
    events = whole(said(("text", ["Hel", "lo"])))
    assert frames(streamed(presenter(), events)) == [
        {
            "type": "message_start",
            "message": {
                "id": "msg_" + ID + ID[:16],
                "type": "message",
                "role": "assistant",
                "model": "claude-x",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "stop_details": None,
                "container": None,
                "usage": {
                    "input_tokens": 30,
                    "cache_creation": {
                        "ephemeral_5m_input_tokens": 0,
                        "ephemeral_1h_input_tokens": 0,
                    },
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                    "output_tokens": 0,
                    "output_tokens_details": {"thinking_tokens": 0},
                    "service_tier": "standard",
                    "inference_geo": "not_available",
                },
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "stop_details": None,
                "container": None,
            },
            "usage": {
                "input_tokens": 10,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 20,
                "output_tokens": 9,
                "output_tokens_details": {"thinking_tokens": 2},
            },
        },
        {"type": "message_stop"},
    ]


def test_a_stream_is_put_together_to_the_whole_answer() -> None:
    events = whole(
        said(
            ("reasoning", ["\n", "I ", "think\n"]),
            ("text", ["\n\n"]),
            ("call", ['{"a":', "1}"]),
            ("text", ["\n", " so", " "]),
            ("call", ""),
        ),
        "tool_calls",
    )
    shown = agreed_content(streamed(presenter(), events), body(presenter(), events))
    assert [block["type"] for block in shown] == ["thinking", "tool_use", "text", "tool_use"]
    assert shown[0]["thinking"] == "I think\n"
    assert shown[0]["signature"] == SEALS.sign("I think\n", tenant="t", model="llama")
    assert [shown[1]["input"], shown[2]["text"], shown[3]["input"]] == [{"a": 1}, "so", {}]
    ids = [shown[1]["id"], shown[3]["id"]]
    assert all(re.fullmatch("toolu_[0-9a-f]{24}", each) for each in ids)
    assert len(set(ids)) == 2
    messages = [
        *judge.read_stream(streamed(presenter(), events)),
        *judge.read_whole(body(presenter(), events)),
    ]
    for message in messages:
        message["content"] = [
            {key: value for key, value in block.items() if value is not None}
            for block in message["content"]
        ]
        message.pop("parsed_output", None)
    assert all(message == messages[0] for message in messages)
    assert messages[0]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("blocks", "tools", "expected"),
    [
        ([], True, [""]),
        ([("text", ["\n "])], True, [""]),
        ([("text", [" Hi", " ", "\n"])], True, [" Hi \n"]),
        ([("text", [" ", "Hi "])], False, [" Hi "]),
        ([("reasoning", [" \n"]), ("text", ["Hi"])], True, ["Hi"]),
        ([("text", ["a", " \n", "b", "\n"]), ("call", ["{}"])], True, ["a \nb", None]),
        ([("text", ["a\n"]), ("text", ["\nb\n"])], True, ["a", "b\n"]),
        ([("text", ["a\n"]), ("text", ["\nb\n"])], False, ["a\n", "b\n"]),
    ],
)
def test_blank_text_is_no_block_and_blanks_between_blocks_are_left_out(
    blocks: list[tuple[BlockKind, list[str]]], tools: bool, expected: list[str | None]
) -> None:
    events = whole(said(*blocks))
    makes = [presenter(tools=tools) for _ in range(2)]
    put_together = judge.read_stream(streamed(makes[0], events))[0]
    read = judge.read_whole(body(makes[1], events))[0]
    assert [block.get("text") for block in put_together["content"]] == expected
    assert [block.get("text") for block in read["content"]] == expected


@pytest.mark.parametrize(
    ("reason", "matched", "begin", "expected"),
    [
        ("stop", None, BEGIN, ("end_turn", None)),
        ("stop", 7, BEGIN, ("end_turn", None)),
        ("stop", "END", BEGIN, ("stop_sequence", "END")),
        ("stop", "<|im_end|>", BEGIN, ("end_turn", None)),
        ("tool_calls", None, BEGIN, ("tool_use", None)),
        ("length", None, BEGIN, ("max_tokens", None)),
        ("length", None, Begin(ID, "m", 5, 30, room=9), ("model_context_window_exceeded", None)),
        ("length", None, Begin(ID, "m", 5, 30, room=10), ("max_tokens", None)),
        ("content_filter", None, BEGIN, ("refusal", None)),
    ],
)
def test_an_end_has_its_reason(
    reason: FinishReason, matched: str | int | None, begin: Begin, expected: tuple[str, str | None]
) -> None:
    events = [begin, *whole(said(("text", ["Hi"])), reason, matched)[1:]]

    def make() -> MessagesPresenter:
        return presenter(stop=("STOP", "END"))

    for message in (
        *judge.read_stream(streamed(make(), events)),
        *judge.read_whole(body(make(), events)),
    ):
        assert (message["stop_reason"], message["stop_sequence"]) == expected
        refused = {"type": "refusal", "category": None, "explanation": None}
        assert message["stop_details"] == (refused if reason == "content_filter" else None)


def test_a_silent_answer_has_no_content_and_counts_none() -> None:
    events = whole(said(("reasoning", ["a"]), ("text", ["b"]), ("call", ["{}"])), "length")
    for message in (
        *judge.read_stream(streamed(presenter(MessagesView("m", silent=True)), events)),
        *judge.read_whole(body(presenter(MessagesView("m", silent=True)), events)),
    ):
        assert (message["content"], message["stop_reason"]) == ([], "max_tokens")
        usage = message["usage"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (10, 0)
        assert usage["output_tokens_details"] == {"thinking_tokens": 0}


def test_what_a_view_asks_for_is_told() -> None:
    edit: dict[str, object] = {
        "type": "clear_thinking_20251015",
        "cleared_thinking_turns": 1,
        "cleared_input_tokens": 5,
    }
    dropped: dict[str, object] = {
        "type": "thinking_dropped",
        "path": "messages.1.content.0",
        "reason": "prefix_binding_mismatch",
    }
    view = MessagesView(
        "m",
        applied_edits=(edit,),
        diagnosed=True,
        transformations=(dropped,),
        service_tier="priority",
    )
    events = whole(said(("text", ["Hi"])))
    put_together = judge.read_stream(streamed(presenter(view), events))[1]
    read = judge.read_whole(body(presenter(view), events))[1]
    for message in (put_together, read):
        assert message["context_management"] == {"applied_edits": [edit]}
        assert message["diagnostics"] == {"cache_miss_reason": {"type": "unavailable"}}
        assert message["input_transformations"] == [dropped]
        assert message["usage"]["service_tier"] == "priority"
