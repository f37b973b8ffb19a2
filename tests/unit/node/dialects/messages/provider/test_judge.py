"""Judge of a vendor's Messages that pass unread: when they begin, whether they are whole, what they cost."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.messages.provider.dialect import PROVIDER
from smg_node.dialects.messages.provider.judge import MessagesJudge
from smg_node.dialects.sse_reader import EventLines
from smg_node.dialects.worker_errors import WorkerError
from support.providers import messages_answers as vendor

TEXT = vendor.block_start(0, {"type": "text", "text": ""})
HI = vendor.delta(0, "text_delta", text="Hi")


def judged(raw: bytes, *, named: bool = True) -> MessagesJudge:
    judge = MessagesJudge()
    for event in EventLines().feed(raw):
        name = json.loads(event)["type"].encode() if named else b""
        judge.take(name, event)
    return judge


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("raw", "begun"),
    [
        (b"", False),
        (vendor.start() + vendor.PING + TEXT, False),
        (TEXT + vendor.delta(0, "text_delta", text=""), False),
        (TEXT + HI, True),
        (vendor.block_start(0, {"type": "text", "text": "H"}), True),
        (vendor.block_start(0, {"type": "thinking", "thinking": "", "signature": ""}), False),
        (vendor.delta(0, "thinking_delta", thinking="I"), True),
        (vendor.delta(0, "signature_delta", signature="c2ln"), True),
        (vendor.block_start(0, {"type": "redacted_thinking", "data": "x"}), True),
        (vendor.block_start(0, {"type": "tool_use", "id": "a", "name": "f", "input": {}}), True),
        (vendor.block_start(0, {"type": "server_tool_use", "id": "a", "input": {}}), True),
    ],
)
def test_an_answer_begins_with_its_first_word(raw: bytes, begun: bool, named: bool) -> None:
    assert judged(raw, named=named).begun is begun


def test_a_whole_stream_is_done_and_has_its_usage() -> None:
    judge = judged(vendor.stream([{"type": "text", "text": "Hi"}]))
    judge.finish()
    assert (judge.begun, judge.done, judge.failure) == (True, True, None)
    assert judge.usage == Usage(37, 12, 20, 5, 7, 3, "standard")


def test_what_was_told_of_a_cut_stream_is_known() -> None:
    judge = judged(vendor.start() + TEXT + HI)
    assert judge.usage == Usage(37, 0, 20, 0, 7, 3, "standard")
    judge.finish()
    assert isinstance(judge.failure, SmgError)
    assert judge.failure.kind is ErrorKind.UPSTREAM_FAILED


def test_an_error_ends_it_and_nothing_counts_behind_it() -> None:
    error = vendor.event("error", error={"type": "overloaded_error", "message": "Full"})
    judge = judged(vendor.start() + TEXT + HI + error + vendor.stop())
    assert isinstance(judge.failure, WorkerError)
    assert (judge.failure.status, judge.done) == (529, False)


@pytest.mark.parametrize("said", [b"[]", b"<html>", b"7"])
def test_what_is_no_event_is_a_failure(said: bytes) -> None:
    judge = MessagesJudge()
    judge.take(b"", said)
    assert isinstance(judge.failure, SmgError)


def test_a_stop_without_a_reason_is_none() -> None:
    judge = judged(vendor.start() + vendor.event("message_stop"))
    assert (judge.done, isinstance(judge.failure, SmgError)) == (False, True)


def test_the_end_mark_of_another_api_is_nothing() -> None:
    judge = judged(vendor.stream([]))
    judge.take(b"", b"[DONE]")
    judge.finish()
    assert (judge.done, judge.failure) == (True, None)


@pytest.mark.parametrize(
    ("body", "failed"),
    [
        (vendor.message({"type": "text", "text": "Hi"}), False),
        (vendor.message({"type": "unheard_of"}, reason="pause_turn"), False),
        (vendor.message(reason=None), True),
        ({"type": "message", "stop_reason": "end_turn"}, True),
        ({"type": "error", "error": {"type": "api_error", "message": "No"}}, True),
        ([], True),
    ],
)
def test_whole_bodies(body: Any, failed: bool) -> None:
    judge = MessagesJudge()
    judge.whole(json.dumps(body).encode())
    assert (judge.failure is not None, judge.done) == (failed, not failed)
    if not failed:
        assert judge.usage == Usage(37, 12, 20, 5, 7, 3, "standard")


@settings(max_examples=60, deadline=None)
@given(vendor.answers, st.sampled_from(vendor.REASONS))
def test_streams_and_bodies_of_any_answer_are_judged_alike(
    blocks: list[vendor.Block], word: str
) -> None:
    streamed = judged(vendor.stream(blocks, reason=word))
    streamed.finish()
    whole = PROVIDER.judge()
    whole.whole(json.dumps(vendor.message(*blocks, reason=word)).encode())
    for judge in (streamed, whole):
        assert (judge.begun, judge.done, judge.failure) == (True, True, None)
        assert judge.usage == Usage(37, 12, 20, 5, 7, 3, "standard")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from((b"", b"error", b"ping")), st.binary(max_size=30)), max_size=4
    )
)
def test_garbage_is_never_whole(events: list[tuple[bytes, bytes]]) -> None:
    judge = MessagesJudge()
    for name, data in events:
        judge.take(name, data)
    judge.finish()
    assert judge.failure is not None


def test_deltas_of_a_begun_answer_are_not_read() -> None:
    judge = judged(vendor.start() + TEXT + HI)
    judge.take(b"content_block_delta", b"not even JSON")
    judge.take(b"", b'{"type":"content_block_delta", not even JSON')
    assert judge.failure is None
    data = HI.split(b"data: ")[1].strip()
    started = time.perf_counter()
    for _ in range(10_000):
        judge.take(b"content_block_delta", data)
    assert time.perf_counter() - started < 0.5
