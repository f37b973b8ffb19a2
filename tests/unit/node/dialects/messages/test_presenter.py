"""Streams and whole answers of Messages, judged by the official client and byte by byte."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import anthropic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Tool, Turn
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.messages.message_object import Signer
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from support.answers.grammatical_streams import streams
from support.clients import messages_judge as judge
from support.tools.example_counts import example_count

ID = "0123456789abcdef" * 2
BEGIN = Begin(ID, "llama", 5, 30)
SEALS = ThoughtSeals(PlainVault())
VIEW = MessagesView("claude-x")


def presenter(
    view: MessagesView = VIEW, *, tools: bool = True, stop: tuple[str, ...] = (), clock: Any = None
) -> MessagesPresenter:
    prompt = ChatPrompt((Turn("user", "Hi"),), (Tool("look_up"), Tool("f")) if tools else ())
    request = GenerateRequest("llama", (prompt,), Sampling(max_tokens=64, stop=stop), True)
    signer = Signer(SEALS, tenant="t", model="llama", omitted=view.display == "omitted")
    return MessagesPresenter(ParsedBody(request, view), "req_1", signer, clock)


def said(*blocks: tuple[BlockKind, str | Sequence[str]], name: str = "f") -> list[Event]:
    """Return the events of these blocks, each cut where it is said, or at every character."""
    events: list[Event] = []
    for at, (kind, texts) in enumerate(blocks):
        called, call_id = (name, f"functions.{name}:{at}") if kind == "call" else ("", "")
        events.append(BlockStart(0, at, kind, called, call_id))
        events += [Delta(0, at, text, 1) for text in texts]
        events.append(BlockEnd(0, at, kind, "".join(texts), called, call_id))
    return events


def whole(
    events: list[Event], reason: FinishReason = "stop", matched: str | int | None = None
) -> list[Event]:
    return [BEGIN, *events, Finish(0, reason, matched), Usage(30, 9, 20, 2), End()]


def streamed(one: MessagesPresenter, events: Sequence[Event]) -> bytes:
    return b"".join(one.frames((event,)) for event in events)


def body(one: MessagesPresenter, events: Sequence[Event]) -> bytes:
    collector = Collector(1)
    collector.feed(events)
    return one.answer(collector.answer())


def frames(raw: bytes) -> list[dict[str, Any]]:
    """Return the data of each frame, whose event line is its type."""
    found = []
    for frame in raw.decode().split("\n\n")[:-1]:
        event, data = frame.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert event == f"event: {value['type']}"
        found.append(value)
    return found


def content(events: list[Event], one: MessagesPresenter | None = None) -> list[dict[str, Any]]:
    """Return the content of an answer, the same streamed and whole."""
    make = (lambda: one) if one is not None else presenter
    put_together = judge.read_stream(streamed(make(), events))
    read = judge.read_whole(body(make(), events))
    contents = [message["content"] for message in [*put_together, *read]]
    assert all(each == contents[0] for each in contents)
    return [dict(block) for block in contents[0]]


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
    shown = content(events)
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
    make = lambda: presenter(stop=("STOP", "END"))  # noqa: E731
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
    edit = {
        "type": "clear_thinking_20251015",
        "cleared_thinking_turns": 1,
        "cleared_input_tokens": 5,
    }
    dropped = {
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
    assert [block["input"] for block in content(events)] == [expected]


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


# ── Any stream ───────────────────────────────────────────────────────────────


def batches(data: st.DataObject, events: Sequence[Event]) -> list[Sequence[Event]]:
    places = data.draw(st.sets(st.integers(0, len(events)))) | {0, len(events)}
    return [events[low:high] for low, high in pairwise(sorted(places))]


@settings(deadline=None, max_examples=example_count(150))
@given(st.data(), streams(), st.booleans(), st.booleans())
def test_any_stream_is_put_together_to_its_whole_answer(
    data: st.DataObject, events: list[Event], tools: bool, eager: bool
) -> None:
    view = MessagesView("m", eager_all=eager)
    make = lambda: presenter(view, tools=tools)  # noqa: E731
    one = make()
    raw = b"".join(one.frames(batch) for batch in batches(data, events))
    assert raw == streamed(make(), events)
    if b"event: error" in raw:
        assert eager
        return
    put_together = judge.read_stream(raw)[0]
    read = judge.read_whole(body(make(), events))[0]
    assert put_together["content"] == read["content"]
    assert put_together["stop_reason"] == read["stop_reason"]
    assert [each["index"] for each in frames(raw) if each["type"] == "content_block_start"] == [
        *range(len(read["content"]))
    ]


@settings(deadline=None, max_examples=example_count(100))
@given(st.data(), streams(failing=True))
def test_any_stream_that_fails_ends_with_one_error(
    data: st.DataObject, events: list[Event]
) -> None:
    one = presenter()
    shown = frames(b"".join(one.frames(batch) for batch in batches(data, events)))
    kinds = [each["type"] for each in shown]
    assert kinds[-1] == "error"
    assert kinds.count("error") == 1
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")


@settings(deadline=None, max_examples=example_count(100))
@given(streams())
def test_the_template_around_a_text_gives_the_same_frames(events: list[Event]) -> None:
    one, other = presenter(tools=False), presenter(tools=False)
    for event in events:
        around = one.around()
        shown = one.frames((event,))
        if type(event) is Delta and around is not None and event.text:
            assert shown == around.head + around.text(event.text) + around.tail
        assert shown == other.frames((event,))
