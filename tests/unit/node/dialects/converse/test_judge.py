"""Answers of Bedrock that pass unread: when they begin, whether they are whole, and what they cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.converse.aws_frames import FrameReader
from smg_node.dialects.converse.judge import ConverseJudge
from smg_node.dialects.worker_errors import WorkerError
from support.providers.converse_answers import (
    ROLE,
    call,
    cost,
    delta,
    ended,
    failure,
    started,
    stopped,
    text,
    thought,
    whole_answer,
)


def told(judge: ConverseJudge, data: bytes) -> ConverseJudge:
    for frame in FrameReader().feed(data):
        name = frame.headers.get(":event-type") or frame.headers.get(":exception-type")
        judge.take(str(name).encode(), frame.payload)
    return judge


@pytest.mark.parametrize(
    "block",
    [
        text(0, "x"),
        thought(0, {"text": "x"}),
        thought(0, {"signature": "x"}),
        started(0, "f", "tooluse_1"),
        ended("end_turn"),
    ],
)
def test_the_first_word_begins_the_answer_and_no_preamble_does(block: bytes) -> None:
    judge = told(ConverseJudge(), ROLE + delta(0, text="") + stopped(0))
    assert not judge.begun
    assert told(judge, block).begun


@pytest.mark.parametrize("named", [True, False])
def test_an_answer_is_whole_at_its_reason_and_costs_what_comes_behind(named: bool) -> None:
    judge = ConverseJudge()
    quoted = text(0, 'the word "stopReason" and "contentBlockIndex"')
    data = ROLE + quoted + call(1, "f", "i", '{"stopReason":1}')
    for frame in FrameReader().feed(data + ended("tool_use") + cost(9, 4, cacheReadInputTokens=2)):
        name = str(frame.headers[":event-type"]) if named else ""
        assert not judge.done or name in ("", "metadata")
        judge.take(name.encode(), frame.payload)
    judge.finish()
    assert judge.done
    assert judge.failure is None
    assert judge.usage == Usage(11, 4, 2)


def test_an_answer_that_breaks_off_is_none() -> None:
    judge = told(ConverseJudge(), ROLE + text(0, "x"))
    judge.finish()
    assert not judge.done
    assert isinstance(judge.failure, SmgError)


def test_an_exception_is_the_failure_and_the_first_one_counts() -> None:
    data = ROLE + text(0, "x") + failure("throttlingException", {"message": "Slow down."})
    judge = told(ConverseJudge(), data + failure("validationException", {}) + ended("end_turn"))
    assert isinstance(judge.failure, WorkerError)
    assert (judge.failure.status, judge.failure.message) == (429, "Slow down.")
    assert not judge.done


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_an_answer_that_nobody_can_read_is_none(reason: str) -> None:
    assert isinstance(told(ConverseJudge(), ended(reason)).failure, SmgError)


def test_a_whole_body_is_judged_likewise() -> None:
    judge = ConverseJudge()
    judge.whole(whole_answer({"text": "x"}, cacheWriteInputTokens=3))
    assert (judge.begun, judge.done, judge.failure) == (True, True, None)
    assert judge.usage == Usage(12, 4, 0, 0, 3)
    for body in (b"<html>", b"{}", b'{"output":{}}'):
        judge = ConverseJudge()
        judge.whole(body)
        assert isinstance(judge.failure, SmgError)
        assert not judge.done
    judge = ConverseJudge()
    judge.whole(b'{"message":"No."}')
    assert isinstance(judge.failure, WorkerError)


def test_a_delta_of_an_answer_that_has_begun_is_not_decoded() -> None:
    judge = told(ConverseJudge(), text(0, "x"))
    judge.take(b"contentBlockDelta", b"no JSON at all")
    judge.take(b"", b'{"contentBlockIndex":0 no JSON at all')
    assert judge.failure is None


@given(st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=40)), max_size=4))
def test_garbage_is_a_failure_and_never_an_exception(events: list[tuple[bytes, bytes]]) -> None:
    judge = ConverseJudge()
    for name, data in events:
        judge.take(name, data)
    judge.finish()
    assert judge.failure is not None
