"""Broken answers of a vendor's Messages, and any answer at every cut: whole, or an error, never half of one."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import (
    Event,
    Fail,
)
from smg_node.dialects.worker_errors import WorkerError
from support.providers import messages_answers as vendor
from support.providers.heard_messages import (
    ends,
    heard,
    listener,
    told,
    whole,
    whole_bytes,
)

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
            one.end(out)
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
