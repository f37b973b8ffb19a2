"""Vendors' answers that pass unread: when they begin, whether they are whole, what they cost."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.gemini.provider.judge import ContentJudge
from smg_node.dialects.worker_errors import WorkerError
from support.providers.generate_content import USED, answer, call, candidate, text, thought
from support.tools.example_counts import example_count

BLOCKED: dict[str, Any] = {
    "promptFeedback": {"blockReason": "SAFETY"},
    "usageMetadata": {"promptTokenCount": 4},
}
ERROR: dict[str, Any] = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def judged(*events: Any, ended: bool = True) -> ContentJudge:
    judge = ContentJudge()
    for event in events:
        judge.take(b"", event if isinstance(event, bytes) else encoded(event))
    if ended:
        judge.finish()
    return judge


@pytest.mark.parametrize(
    ("part", "begun"),
    [
        (text("a"), True),
        (thought("a"), True),
        (call(), True),
        ({"functionCall": {"name": "f", "willContinue": True}}, True),
        ({"executableCode": {"code": "1"}}, True),
        (text("", thoughtSignature="S"), True),
        (text(""), False),
        (thought(""), False),
        ({}, False),
    ],
)
def test_an_answer_begins_with_its_first_word(part: dict[str, Any], begun: bool) -> None:
    assert judged(answer(part), ended=False).begun is begun


def test_what_comes_before_the_first_word_begins_nothing() -> None:
    judge = judged({"usageMetadata": USED, "modelVersion": "m"}, answer(), BLOCKED, ended=False)
    assert not judge.begun


def test_a_stream_is_whole_with_its_reason_and_costs_what_its_last_event_says() -> None:
    judge = judged(answer(text("a"), usageMetadata={"promptTokenCount": 5}), ended=False)
    assert not judge.done
    judge.take(b"", encoded(answer(text("b"), usageMetadata={"thoughtsTokenCount": 1})))
    judge.take(b"", encoded(answer(finish="STOP", usageMetadata={"candidatesTokenCount": 9})))
    assert judge.done
    assert judge.failure is None
    judge.finish()
    # What passed unread between the first and the last is not asked, because the last one tells all.
    assert judge.usage == Usage(5, 9, 0)


def test_a_cut_stream_is_a_failure_that_cost_what_was_told() -> None:
    told = [answer(text("a"), usageMetadata=USED), answer(text("b"), usageMetadata={**USED, "candidatesTokenCount": 8})]  # fmt: skip
    judge = judged(*told)
    assert isinstance(judge.failure, SmgError)
    assert judge.failure.message == "the vendor ended its answer before the end of it"
    assert not judge.done
    assert judge.usage == Usage(5, 8, 0)


def test_nothing_at_all_is_a_failure() -> None:
    assert isinstance(judged().failure, SmgError)


def test_every_candidate_that_begins_must_end() -> None:
    begun = {"candidates": [candidate(text("a")), candidate(text("b"), index=1)]}
    one = {"candidates": [candidate(finish="STOP")]}
    other = {"candidates": [candidate(finish="MAX_TOKENS", index=1)]}
    assert judged(begun, one).failure is not None
    assert judged(begun, one, other).failure is None
    assert judged(one, {"candidates": [candidate(text("b"), index=1)]}).failure is not None


@pytest.mark.parametrize("body", [BLOCKED, {"candidates": [{"finishReason": "SAFETY"}]}])
def test_an_answer_that_is_refused_is_an_answer(body: dict[str, Any]) -> None:
    judge = judged(body)
    assert (judge.begun, judge.done, judge.failure) == (False, True, None)


def test_a_garbled_answer_is_a_failure_until_something_of_it_has_passed() -> None:
    garbled = answer(finish="MALFORMED_FUNCTION_CALL")
    failure = judged(garbled).failure
    assert isinstance(failure, SmgError)
    assert failure.code == "malformed_function_call"
    assert judged(answer(text("a")), garbled).failure is None
    whole = ContentJudge()
    whole.whole(encoded(garbled))
    assert isinstance(whole.failure, SmgError)
    whole = ContentJudge()
    whole.whole(encoded(answer(text("a"), finish="MALFORMED_FUNCTION_CALL")))
    assert (whole.failure, whole.done) == (None, True)


@pytest.mark.parametrize("before", [[], [answer(text("a"))]])
@pytest.mark.parametrize("error", [ERROR, [ERROR]])
def test_an_error_is_the_vendors_own(before: list[dict[str, Any]], error: Any) -> None:
    judge = judged(*before, error)
    assert isinstance(judge.failure, WorkerError)
    assert (judge.failure.status, judge.failure.code, judge.failure.message) == (
        503,
        "UNAVAILABLE",
        "busy",
    )


def test_an_event_that_is_called_an_error_is_one() -> None:
    for data, message in ((b"x", ""), (encoded({"message": "oh"}), "oh"), (b"[]", "")):
        judge = ContentJudge()
        judge.take(b"error", data)
        judge.finish()
        assert isinstance(judge.failure, WorkerError | SmgError)
        assert message in str(judge.failure)


@pytest.mark.parametrize("data", [b"<html>", b"7", b'"a"', b"{", b"\xff"])
def test_what_is_no_answer_is_a_failure_before_the_first_word(data: bytes) -> None:
    assert judged(data, ended=False).failure is not None
    judge = ContentJudge()
    judge.whole(data)
    assert judge.failure is not None


def test_elements_of_an_array_are_events_with_what_stands_around_them() -> None:
    first, last = encoded(answer(text("a"))), encoded(answer(finish="STOP", usageMetadata=USED))
    for events in ([b"[" + first, b",\r\n" + last + b"\n]"], [b"[", first + b",", last, b"]"]):
        judge = judged(*events)
        assert (judge.begun, judge.done, judge.failure) == (True, True, None)
        assert judge.usage == Usage(5, 2, 0)


@pytest.mark.parametrize("said", ['{"finishReason": "STOP"}', '"error"', '"usageMetadata"', "é\n"])
def test_words_of_the_answer_are_never_taken_for_its_end(said: str) -> None:
    judge = judged(answer(text("a")), answer(text(said)), ended=False)
    assert (judge.done, judge.failure) == (False, None)


@pytest.mark.parametrize("indent", [None, 2])
def test_whole_bodies_and_arrays_of_events_are_judged_alike(indent: int | None) -> None:
    whole = answer(text("a"), finish="STOP", usageMetadata=USED)
    for body in (whole, [answer(text("a")), answer(finish="STOP", usageMetadata=USED)]):
        judge = ContentJudge()
        judge.whole(json.dumps(body, indent=indent).encode())
        assert (judge.begun, judge.done, judge.failure) == (True, True, None)
        assert judge.usage == Usage(5, 2, 0)


@settings(max_examples=example_count(150))
@given(st.lists(st.binary(max_size=12) | st.sampled_from([encoded(answer(text("a"))), encoded(answer(finish="STOP")), encoded(ERROR)]), max_size=5))  # fmt: skip
def test_a_judge_of_anything_has_an_opinion(events: list[bytes]) -> None:
    judge = judged(*events)
    assert judge.done or judge.failure is not None
    for event in events:
        whole = ContentJudge()
        whole.whole(event)
        assert whole.done is (whole.failure is None)
