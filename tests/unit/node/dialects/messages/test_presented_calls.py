"""Calls, thoughts that are not shown, and failures, as streams and whole answers of Messages show them."""

import json

import anthropic
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event, Fail, FinishReason
from smg_node.dialects.messages.view import MessagesView
from support.answers.messages_answers import (
    BEGIN,
    SEALS,
    VIEW,
    body,
    frames,
    presenter,
    said,
    streamed,
    whole,
)
from support.clients import messages_judge as judge
from support.clients.messages_judge import agreed_content

# ── Thoughts that are not shown ──────────────────────────────────────────────


def test_an_omitted_thought_is_carried_by_its_signature() -> None:
    view = MessagesView("m", display="omitted")
    events = whole(said(("reasoning", ["\nThe se", "cret", "\n"]), ("text", ["\nHi"])))
    raw, plain = streamed(presenter(view), events), body(presenter(view), events)
    for message in (*judge.read_stream(raw), *judge.read_whole(plain)):
        thought, text = message["content"]
        assert (thought["thinking"], text["text"]) == ("", "Hi")
        signature = thought["signature"]
        assert SEALS.opened(signature, tenant="t", model="llama") == "The secret\n"
        assert SEALS.opened(signature, tenant="u", model="llama") is None
    assert b"cret" not in raw + plain
    assert [
        each["delta"]["type"] for each in frames(raw) if each["type"] == "content_block_delta"
    ] == [
        "signature_delta",
        "text_delta",
    ]


def test_the_length_of_an_omitted_thought_is_told_every_two_seconds() -> None:
    now_s = 100.0
    view = MessagesView("m", display="omitted")
    one = presenter(view, clock=lambda: now_s)
    raw = one.frames((BEGIN, BlockStart(0, 0, "reasoning")))
    for step in range(12):
        now_s = 100.5 + step / 2
        raw += one.frames((Delta(0, 0, "x", 2),))
    raw += one.frames((BlockEnd(0, 0, "reasoning", "x" * 12),))
    counts = [
        each["delta"]["estimated_tokens"]
        for each in frames(raw)
        if each["type"] == "content_block_delta" and each["delta"]["type"] == "thinking_delta"
    ]
    assert counts == [8, 8, 8]
    assert json.loads(raw.split(b"data: ")[-1])["type"] == "content_block_stop"


# ── Arguments ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("printed", "reason", "expected"),
    [
        ('{"a": 1}', "tool_calls", {"a": 1}),
        ("", "tool_calls", {}),
        ("[1]", "tool_calls", {"INVALID_JSON": "[1]"}),
        ('{"a":"ls', "stop", {"INVALID_JSON": '{"a":"ls'}),
        ('{"a":1,"b":"ls', "length", {"a": 1}),
    ],
)
def test_a_call_has_an_object(
    printed: str, reason: FinishReason, expected: dict[str, object]
) -> None:
    events = whole(said(("call", printed)), reason)
    shown = agreed_content(streamed(presenter(), events), body(presenter(), events))
    assert [block["input"] for block in shown] == [expected]


def test_members_are_told_when_they_are_complete_and_eager_tools_at_once() -> None:
    events = whole(said(("call", ['{"a":"x', "y", '"}'])), "tool_calls")
    for view, expected in (
        (VIEW, ['{"a":"xy"', "}"]),
        (MessagesView("m", eager_tools=frozenset({"f"})), ['{"a":"x', "y", '"', "}"]),
        (MessagesView("m", eager_all=True), ['{"a":"x', "y", '"', "}"]),
        (MessagesView("m", eager_tools=frozenset({"g"})), ['{"a":"xy"', "}"]),
    ):
        pieces = [
            each["delta"]["partial_json"]
            for each in frames(streamed(presenter(view), events))
            if each["type"] == "content_block_delta"
        ]
        assert pieces == expected


def test_an_eager_call_that_turns_out_to_be_no_json_ends_the_stream() -> None:
    one = presenter(MessagesView("m", eager_all=True))
    events = whole(said(("call", ['{"a":"x', "\\q"]), ("text", ["more"])), "tool_calls")
    raw = streamed(one, events)
    assert [each["type"] for each in frames(raw)][-2:] == ["content_block_stop", "error"]
    with pytest.raises(anthropic.APIStatusError) as found:
        judge.read_stream(raw)
    assert found.value.body == {
        "type": "error",
        "error": {
            "type": "api_error",
            "message": "the model's arguments of a call are no JSON, and a part of them was streamed already",
        },
        "request_id": "req_1",
    }


# ── Failures ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "before",
    [
        [],
        [BEGIN],
        [BEGIN, *said(("text", ["Hi"]))[:-1]],
        [BEGIN, *said(("text", ["Hi "]))],
        [BEGIN, *said(("call", ['{"a":1']))],
    ],
)
def test_a_failure_ends_open_blocks_and_is_the_last_event(before: list[Event]) -> None:
    fail = Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine broke"))
    one = presenter()
    raw = streamed(one, [*before, fail])
    assert one.frames((fail,)) == b""
    shown = frames(raw)
    assert shown[-1] == {
        "type": "error",
        "error": {"type": "api_error", "message": "the engine broke"},
        "request_id": "req_1",
    }
    kinds = [each["type"] for each in shown]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")
    assert "message_stop" not in kinds
    with pytest.raises(anthropic.APIStatusError, match="the engine broke"):
        judge.raw_events(raw)
