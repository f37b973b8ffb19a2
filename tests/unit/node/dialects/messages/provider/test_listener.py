"""Listener of a vendor's Messages: streams as they really come, at every cut, and bodies that say the same."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Usage,
)
from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.messages.provider.listener import MessagesListener
from smg_node.dialects.worker_errors import WorkerError
from support.providers import messages_answers as vendor

BEGIN = Begin("0123456789abcdef" * 2, "ours", 5, 30)
USAGE = Usage(37, 12, 20, 5, 7, 3)


def listener() -> MessagesListener:
    return MessagesListener(BEGIN, prompt_tokens=30, taken=("taken",))


def heard(pieces: Sequence[bytes]) -> list[Event]:
    out: list[Event] = []
    one = listener()
    for piece in pieces:
        one.feed(piece, out)
    one.end(out)
    assert one.finished
    return out


def whole_bytes(body: bytes) -> list[Event]:
    out: list[Event] = []
    one = listener()
    one.feed_whole(body, out)
    one.end(out)
    return out


def whole(message: dict[str, Any]) -> list[Event]:
    return whole_bytes(json.dumps(message).encode())


def told(events: Sequence[Event]) -> list[object]:
    """Return what is the same however an answer is cut."""
    return [event for event in events if not isinstance(event, Delta)]


def ends(events: Sequence[Event]) -> list[tuple[str, str, tuple[Opaque, ...]]]:
    return [
        (event.kind, event.text, event.opaque) for event in events if isinstance(event, BlockEnd)
    ]


def reason(events: Sequence[Event]) -> Finish:
    [found] = [event for event in events if isinstance(event, Finish)]
    return found


def usage(events: Sequence[Event]) -> Usage:
    [found] = [event for event in events if isinstance(event, Usage)]
    return found


def signature(data: str) -> Opaque:
    return Opaque("anthropic", "signature", data)


# ── A stream ─────────────────────────────────────────────────────────────────


def test_a_stream_is_told_event_by_event() -> None:
    raw = [
        vendor.start(),
        vendor.PING,
        vendor.block_start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        vendor.PING,
        vendor.delta(0, "thinking_delta", thinking="I "),
        vendor.delta(0, "thinking_delta", thinking="think"),
        vendor.delta(0, "signature_delta", signature="c2ln"),
        vendor.block_stop(0),
        vendor.block_start(1, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}),
        vendor.delta(1, "input_json_delta", partial_json=""),
        vendor.delta(1, "input_json_delta", partial_json='{"a":'),
        vendor.delta(1, "input_json_delta", partial_json="1}"),
        vendor.block_stop(1),
        vendor.stop("tool_use"),
    ]
    assert heard(raw) == [
        BEGIN,
        BlockStart(0, 0, "reasoning"),
        Delta(0, 0, "I ", 1),
        Delta(0, 0, "think", 1),
        BlockEnd(0, 0, "reasoning", "I think", opaque=(signature("c2ln"),)),
        BlockStart(0, 1, "call", "f", "toolu_1"),
        Delta(0, 1, '{"a":', 1),
        Delta(0, 1, "1}", 1),
        BlockEnd(0, 1, "call", '{"a":1}', "f", "toolu_1"),
        Finish(0, "tool_calls"),
        USAGE,
        End(),
    ]


def test_nothing_is_told_before_the_first_output() -> None:
    out: list[Event] = []
    one = listener()
    one.feed(vendor.start() + vendor.PING, out)
    one.feed(vendor.block_start(0, {"type": "text", "text": ""}), out)
    one.feed(vendor.delta(0, "text_delta", text=""), out)
    assert out == []
    one.feed(vendor.delta(0, "text_delta", text="H"), out)
    assert out == [BEGIN, BlockStart(0, 0, "text"), Delta(0, 0, "H", 1)]


def test_an_answer_of_nothing_is_one() -> None:
    assert heard([vendor.stream([])]) == [BEGIN, Finish(0, "stop"), USAGE, End()]
    assert whole(vendor.message()) == [BEGIN, Finish(0, "stop"), USAGE, End()]


def test_thoughts_that_are_only_signed_or_not_shown_are_blocks_without_text() -> None:
    blocks: list[vendor.Block] = [
        {"type": "thinking", "thinking": "", "signature": "one"},
        {"type": "redacted_thinking", "data": "two"},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking", "thinking": "x", "signature": "three"},
        {"type": "thinking", "thinking": "y", "signature": ""},
        {"type": "text", "text": "So"},
    ]
    found = ends(heard([vendor.stream(blocks)]))
    assert found == [
        ("reasoning", "", (signature("one"),)),
        ("reasoning", "", (Opaque("anthropic", "redacted", "two"),)),
        ("reasoning", "x", (signature("three"),)),
        ("reasoning", "y", ()),
        ("text", "So", ()),
    ]
    assert ends(whole(vendor.message(*blocks))) == found


def test_a_block_may_begin_with_what_it_says() -> None:
    raw = [
        vendor.start(),
        vendor.block_start(0, {"type": "thinking", "thinking": "I", "signature": "early"}),
        vendor.block_stop(0),
        vendor.block_start(1, {"type": "text", "text": "So"}),
        vendor.block_stop(1),
        vendor.block_start(2, {"type": "tool_use", "id": "a", "name": "f", "input": {"b": 1}}),
        vendor.block_stop(2),
        vendor.stop("tool_use"),
    ]
    assert ends(heard(raw)) == [
        ("reasoning", "I", (signature("early"),)),
        ("text", "So", ()),
        ("call", '{"b":1}', ()),
    ]


@pytest.mark.parametrize("printed", [[], [""], ["", "{}"], ["{", "}"], [" "]])
def test_a_call_without_arguments_has_an_empty_object_or_what_was_printed(
    printed: list[str],
) -> None:
    raw = [
        vendor.start(),
        vendor.block_start(0, {"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        *(vendor.delta(0, "input_json_delta", partial_json=piece) for piece in printed),
        vendor.block_stop(0),
        vendor.stop("tool_use"),
    ]
    [(kind, text, _)] = ends(heard(raw))
    assert (kind, text.strip()) == ("call", "{}")


def test_ids_of_earlier_calls_are_not_used_again() -> None:
    call = {"type": "tool_use", "id": "taken", "name": "f", "input": {}}
    [start] = [one for one in whole(vendor.message(call)) if isinstance(one, BlockStart)]
    assert (start.name, start.call_id) == ("f", "")


def test_texts_that_a_citation_parts_are_one_and_those_around_a_foreign_block_are_two() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    blocks = [
        {"type": "text", "text": "The sky"},
        {"type": "text", "text": " is blue"},
        search,
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "So"},
    ]
    expected = [("text", "The sky is blue", ()), ("text", "So", ())]
    assert ends(heard([vendor.stream(blocks)])) == expected
    assert ends(whole(vendor.message(*blocks))) == expected


@pytest.mark.parametrize(
    ("word", "blocks", "finish"),
    [
        ("end_turn", [], Finish(0, "stop")),
        ("end_turn", ["call"], Finish(0, "tool_calls")),
        ("max_tokens", ["call"], Finish(0, "length")),
        ("tool_use", ["call"], Finish(0, "tool_calls")),
        ("pause_turn", [], Finish(0, "pause")),
        ("refusal", [], Finish(0, "refusal")),
        ("model_context_window_exceeded", [], Finish(0, "context_window")),
        ("unheard_of", [], Finish(0, "stop")),
    ],
)
def test_reasons(word: str, blocks: list[str], finish: Finish) -> None:
    said = [{"type": "tool_use", "id": "a", "name": "f", "input": {}} for _ in blocks]
    assert reason(heard([vendor.stream(said, reason=word)])) == finish
    assert reason(whole(vendor.message(*said, reason=word))) == finish


def test_the_text_that_ended_an_answer_is_told() -> None:
    raw = [vendor.start(), vendor.stop("stop_sequence", stop_sequence="END")]
    assert reason(heard(raw)) == Finish(0, "stop", "END")
    ended = vendor.message(reason="stop_sequence", stop_sequence="END")
    assert reason(whole(ended)) == Finish(0, "stop", "END")


# ── Usage ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("first", "last", "used"),
    [
        ({"input_tokens": 10}, {"output_tokens": 3}, Usage(10, 3, 0)),
        ({"input_tokens": 0}, {"input_tokens": 8, "output_tokens": 3}, Usage(8, 3, 0)),
        (
            {"input_tokens": 10, "cache_read_input_tokens": 5},
            {"input_tokens": 12, "cache_read_input_tokens": None, "output_tokens": 3},
            Usage(17, 3, 5),
        ),
        (
            {"input_tokens": 1, "cache_creation_input_tokens": 9},
            {"output_tokens": 3},
            Usage(10, 3, 0, 0, 9),
        ),
        (
            {
                "input_tokens": 1,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 4,
                    "ephemeral_1h_input_tokens": 2,
                },
            },
            {"output_tokens": 3},
            Usage(7, 3, 0, 0, 6, 2),
        ),
        (
            {
                "input_tokens": 1,
                "cache_creation_input_tokens": 3,
                "cache_creation": {"ephemeral_1h_input_tokens": 9},
            },
            {"output_tokens": 3},
            Usage(4, 3, 0, 0, 3, 3),
        ),
        (
            {"input_tokens": 5},
            {
                "output_tokens": 3,
                "iterations": [
                    {"type": "compaction", "input_tokens": 90, "output_tokens": 7},
                    {"type": "message", "input_tokens": 5, "output_tokens": 3},
                ],
            },
            Usage(95, 10, 0),
        ),
        ({}, {}, Usage(30, 1, 0)),
        ({}, {"output_tokens": 3}, Usage(30, 3, 0)),
        ({"input_tokens": 9}, {}, Usage(9, 1, 0)),
        ({"input_tokens": -1}, {"output_tokens": "3"}, Usage(30, 1, 0)),
        (
            {"input_tokens": 9},
            {"output_tokens": 3, "output_tokens_details": {"thinking_tokens": 8}},
            Usage(9, 3, 0, 3),
        ),
    ],
)
def test_usage_is_what_both_ends_of_a_stream_say(
    first: dict[str, Any], last: dict[str, Any], used: Usage
) -> None:
    raw = [
        vendor.start(first),
        vendor.block_start(0, {"type": "text", "text": "Hi"}),
        vendor.block_stop(0),
        vendor.stop(usage=last),
    ]
    assert usage(heard(raw)) == used


# ── What is no answer ────────────────────────────────────────────────────────

TEXT = vendor.block_start(0, {"type": "text", "text": ""})
HI = vendor.delta(0, "text_delta", text="Hi")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        vendor.start(),
        vendor.start() + TEXT + HI,
        vendor.start() + TEXT + HI + vendor.block_stop(0),
        vendor.start() + TEXT + HI + vendor.stop().partition(b"event: message_stop")[0],
        vendor.start() + TEXT + HI + vendor.event("message_stop"),
        vendor.start() + TEXT + HI + vendor.stop(None),
        vendor.start() + HI,
        vendor.start() + TEXT + vendor.delta(1, "text_delta", text="Hi"),
        vendor.start() + TEXT + vendor.delta(0, "thinking_delta", thinking="Hi"),
        vendor.start() + TEXT + vendor.delta(0, "text_delta", text=7),
        vendor.start() + vendor.block_start(0, {"type": "tool_use", "id": "a"}),
        vendor.start() + vendor.event("content_block_start", index="0", content_block={}),
        vendor.start() + vendor.event("content_block_delta", index=0),
        vendor.event("message_delta", delta={"stop_reason": 7}),
        b"data: []\n\n",
        b"data: <html>\n\n",
    ],
)
def test_a_stream_that_is_none_or_was_cut_is_no_answer(raw: bytes) -> None:
    with pytest.raises(SmgError) as caught:
        heard([raw])
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"<html>",
        b"{}",
        b'{"content":null,"stop_reason":"end_turn"}',
        b'{"content":[],"stop_reason":null}',
        b'{"content":[{"type":"tool_use","name":"f","input":[]}],"stop_reason":"tool_use"}',
    ],
)
def test_a_body_that_is_none_is_no_answer(body: bytes) -> None:
    with pytest.raises(SmgError) as caught:
        whole_bytes(body)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


@pytest.mark.parametrize(
    ("said", "status", "code", "words"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, 529, "overloaded_error", "Overloaded"),
        ({"type": "invalid_request_error", "message": "No"}, 400, "invalid_request_error", "No"),
        ({"type": "unheard_of", "message": "No"}, 0, "", "No"),
        ({"message": "No", "code": 429}, 429, "", "No"),
        ("No", 0, "", "No"),
        (None, 0, "", ""),
    ],
)  # fmt: skip
def test_errors_of_the_vendor_are_its_own(said: Any, status: int, code: str, words: str) -> None:
    raw = vendor.event("error", error=said, request_id="req_1")
    for cut in ([vendor.start() + raw], [vendor.start(), TEXT, HI, raw]):
        with pytest.raises(WorkerError) as caught:
            heard(cut)
        error = caught.value
        assert (error.status, error.code, error.message) == (status, code, words)
    one = listener()
    with pytest.raises(WorkerError):
        one.feed_whole(raw.split(b"data: ")[1], [])


def test_a_failure_closes_what_is_open() -> None:
    out: list[Event] = []
    one = listener()
    one.feed(vendor.start() + TEXT + HI, out)
    one.fail(SmgError(ErrorKind.UPSTREAM_FAILED, "it broke"), out)
    assert isinstance(out[-1], Fail)
    assert ends(out) == [("text", "Hi", ())]
    Grammar(1).feed(out)


def test_nothing_counts_behind_the_end() -> None:
    raw = vendor.stream([{"type": "text", "text": "Hi"}])
    assert heard([raw, HI, b"data: [DONE]\n\n", b"garbage\n\n"]) == heard([raw])


def test_event_lines_are_not_needed() -> None:
    raw = vendor.stream([{"type": "text", "text": "Hi"}])
    bare = b"".join(line + b"\r\n" for line in raw.split(b"\n") if not line.startswith(b"event:"))
    assert heard([bare + b"data: [DONE]\n\n"]) == heard([raw])


# ── Any answer ───────────────────────────────────────────────────────────────


@settings(max_examples=80, deadline=None)
@given(vendor.answers, st.sampled_from(vendor.REASONS), st.integers(1, 9), st.randoms())
def test_an_answer_is_the_same_at_every_cut_and_as_a_whole(
    blocks: list[vendor.Block], word: str, width: int, chance: Any
) -> None:
    raw = vendor.stream(blocks, reason=word, width=width)
    events = heard([raw])
    grammar = Grammar(1)
    grammar.feed(events)
    assert grammar.over
    assert heard([raw[at : at + 1] for at in range(len(raw))]) == events
    cuts = sorted(chance.randrange(len(raw)) for _ in range(8))
    pieces = [raw[low:high] for low, high in zip([0, *cuts], [*cuts, None], strict=True)]
    assert heard(pieces) == events
    assert told(whole(vendor.message(*blocks, reason=word))) == told(events)


@settings(max_examples=40, deadline=None)
@given(vendor.answers, st.data())
def test_a_stream_that_breaks_anywhere_keeps_the_grammar(
    blocks: list[vendor.Block], data: st.DataObject
) -> None:
    raw = vendor.stream(blocks)
    cut = data.draw(st.integers(0, len(raw) - 1))
    one, out = listener(), list[Event]()
    one.feed(raw[:cut], out)
    # The last event needs no blank line behind it.
    if not one.finished and cut < len(raw) - 2:
        with pytest.raises(SmgError):
            one.end(list(out))
    one.fail(SmgError(ErrorKind.UPSTREAM_FAILED, "it broke"), out)
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ("type", "index", "delta", "content_block", "message", "usage", "content", "error", "id")
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip
_types = st.sampled_from(
    (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    )
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=30) | st.tuples(_types, _json), max_size=6))
def test_garbage_is_an_error_of_the_vendor(pieces: list[Any]) -> None:
    one, out = listener(), list[Event]()
    try:
        for piece in pieces:
            if isinstance(piece, tuple):
                kind, value = piece
                value = {**value, "type": kind} if isinstance(value, dict) else value
                piece = b"data: " + json.dumps(value).encode() + b"\n\n"
            one.feed(piece, out)
        one.end(out)
    except (SmgError, WorkerError):
        one.fail(SmgError(ErrorKind.UPSTREAM_FAILED, "it broke"), out)
    Grammar(1).feed(out)


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=40) | _json.map(lambda value: json.dumps(value).encode()))
def test_a_body_of_garbage_is_an_error_of_the_vendor(body: bytes) -> None:
    with pytest.raises((SmgError, WorkerError)):
        whole_bytes(body)
