"""Answers of Bedrock that are none: exceptions, cuts, and whatever else may come instead."""

import json
from typing import Any

import pytest
from botocore.exceptions import EventStreamError
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import End, Event, Fail
from smg_node.dialects.converse.listener import ConverseListener
from smg_node.dialects.converse.vendor_answer import ANTHROPIC
from smg_node.dialects.worker_errors import WorkerError
from support.providers.converse_answers import (
    BEGIN,
    ROLE,
    checked,
    cost,
    delta,
    ended,
    event,
    failure,
    listened,
    listened_whole,
    text,
    thought,
    whole_answer,
)
from support.providers.converse_judge import events_of


@pytest.mark.parametrize("said", ["no base64!", "/w=="])
def test_a_redacted_thought_that_cannot_be_read_is_an_error(said: str) -> None:
    with pytest.raises(SmgError) as raised:
        listened([thought(0, {"redactedContent": said}) + ended("end_turn")], issuer=ANTHROPIC)
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use", "", None, 5])
def test_an_answer_that_is_none_is_an_error(reason: Any) -> None:
    with pytest.raises(SmgError) as raised:
        listened([text(0, "x") + ended(reason)])
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED
    with pytest.raises(SmgError):
        listened_whole(whole_answer({"text": "x"}, reason=reason))


EXCEPTIONS = [
    ("throttlingException", 429),
    ("validationException", 400),
    ("modelTimeoutException", 408),
    ("modelStreamErrorException", 500),
    ("serviceUnavailableException", 503),
    ("internalServerException", 500),
    ("modelNotReadyException", 503),
    ("anotherException", 500),
]


def error_of(listener: ConverseListener, data: bytes, size: int, out: list[Event]) -> WorkerError:
    """Return the vendor's error at which a stream in pieces of that size ends."""
    try:
        for at in range(0, len(data), size):
            listener.feed(data[at : at + size], out)
    except WorkerError as error:
        return error
    raise AssertionError("the stream has an error")


@pytest.mark.parametrize(("kind", "status"), EXCEPTIONS)
@pytest.mark.parametrize("before", [b"", ROLE, ROLE + delta(0, text="x"), ended("end_turn")])
def test_an_exception_is_an_error_wherever_it_comes(kind: str, status: int, before: bytes) -> None:
    data = before + failure(kind, {"message": "Too much.", "originalStatusCode": 200})
    for size in (1, len(data)):
        listener, out = ConverseListener(BEGIN, prompt_tokens=7), list[Event]()
        error = error_of(listener, data, size, out)
        assert (error.status, error.message, error.code) == (status, "Too much.", kind)
        listener.fail(SmgError(ErrorKind.UPSTREAM_FAILED, "no"), out)
        grammar = Grammar(1)
        grammar.feed(out)
        assert isinstance(out[-1], Fail)
    if kind.startswith("throttling"):
        with pytest.raises(EventStreamError, match="throttlingException"):
            events_of(data)


def test_nothing_follows_the_cost() -> None:
    data = text(0, "x") + ended("end_turn") + cost(9, 4)
    assert listened([data, text(1, "y") + failure("internalServerException", {})]) == listened(
        [data]
    )


def test_an_answer_is_whole_at_its_reason_even_if_the_stream_is_cut_then() -> None:
    data = ROLE + text(0, "x") + ended("max_tokens")
    metadata = cost(9, 4)
    for size in range(len(data) + len(metadata) + 1):
        listener, out = ConverseListener(BEGIN, prompt_tokens=7), list[Event]()
        listener.feed((data + metadata)[:size], out)
        assert listener.finished == (size >= len(data))
        if size >= len(data):
            listener.end(out)
            assert checked(out)[-1] == End()
            continue
        with pytest.raises(SmgError) as raised:
            listener.end(out)
        assert raised.value.kind is ErrorKind.UPSTREAM_FAILED
        listener.fail(raised.value, out)
        Grammar(1).feed(out)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"<html>",
        b'{"output":{}}',
        b'{"output":{"message":{"content":5}},"stopReason":"end_turn"}',
        b'{"output":{"message":{"content":[{"text":5}]}},"stopReason":"end_turn"}',
        b'{"output":[],"stopReason":"end_turn"}',
    ],
)
def test_a_body_that_is_no_answer_is_an_error(body: bytes) -> None:
    with pytest.raises(SmgError) as raised:
        listened_whole(body)
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED


def test_a_whole_error_after_success_is_the_vendors_own() -> None:
    body = b'{"__type":"com.amazon.coral#ThrottlingException","message":"Too many."}'
    with pytest.raises(WorkerError) as raised:
        listened_whole(body)
    assert (raised.value.status, raised.value.message) == (429, "Too many.")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "a", "{}", "YQ=="]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("contentBlockIndex", "delta", "start", "toolUse", "text", "input", "name"),
                    *("reasoningContent", "signature", "redactedContent", "toolUseId", "type"),
                    *("stopReason", "usage", "inputTokens", "cacheDetails", "content", "message"),
                    *(
                        "output",
                        "reasoningText",
                        "citationsContent",
                        "additionalModelResponseFields",
                    ),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["contentBlockDelta", "contentBlockStart", "contentBlockStop", "messageStop", "metadata", "x"]
)


@given(st.lists(st.tuples(KINDS, VALUES), max_size=8))
def test_any_events_are_an_answer_or_an_error_and_obey_the_grammar(
    events: list[tuple[str, Any]],
) -> None:
    listener, out = ConverseListener(BEGIN, prompt_tokens=7), list[Event]()
    try:
        for kind, said in events:
            payload = said if isinstance(said, dict) else {"delta": said, "contentBlockIndex": 0}
            listener.feed(event(kind, payload), out)
        listener.end(out)
    except (SmgError, WorkerError):
        listener.fail(SmgError(ErrorKind.UPSTREAM_FAILED, "no"), out)
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over


@given(VALUES | st.binary(max_size=30))
def test_any_body_is_an_answer_or_an_error_and_obeys_the_grammar(said: Any) -> None:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    listener, out = ConverseListener(BEGIN, prompt_tokens=7), list[Event]()
    try:
        listener.feed_whole(body, out)
        listener.end(out)
    except (SmgError, WorkerError):
        listener.fail(SmgError(ErrorKind.UPSTREAM_FAILED, "no"), out)
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over
