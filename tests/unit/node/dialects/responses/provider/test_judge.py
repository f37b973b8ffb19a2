"""Judge of responses: when an answer has begun, whether it is whole, what it cost; it sees what the listener sees."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import Fail, Usage
from smg_node.dialects.responses.provider.judge import ResponsesJudge
from smg_node.dialects.worker_errors import WorkerError
from support.answers.vendor_responses import (
    Item,
    call,
    event,
    heard,
    refused,
    response,
    said,
    searched,
    stream,
    thought,
)


def datas(told: bytes) -> list[bytes]:
    return [part.partition(b"data: ")[2] for part in told.split(b"\n\n") if part]


def judged(told: bytes) -> ResponsesJudge:
    judge = ResponsesJudge()
    for data in datas(told):
        judge.take(b"", data)
    judge.finish()
    return judge


@pytest.mark.parametrize(
    ("item", "first"),
    [
        (said("Hello"), "response.output_text.delta"),
        (refused("no"), "response.refusal.delta"),
        (thought("Why"), "response.reasoning_summary_text.delta"),
        (thought(data="eA=="), "response.output_item.done"),
        (call(), "response.output_item.added"),
        (searched(), "response.output_item.added"),
    ],
)
def test_an_answer_begins_with_its_first_word(item: Item, first: str) -> None:
    judge, begun = ResponsesJudge(), ""
    for data in datas(stream(item)):
        judge.take(b"", data)
        if judge.begun and not begun:
            begun = json.loads(data)["type"]
    assert begun == first
    tools = (("web_search", 1),) if item == searched() else ()
    used = Usage(9, 5, 4, 3, 2, 0, server_tools=tools)
    assert (judge.done, judge.failure, judge.usage) == (True, None, used)


def test_an_answer_without_its_last_event_is_not_whole() -> None:
    told = stream(said("Hello"))
    judge = judged(told[: told.rindex(b"event: ")])
    assert (judge.begun, judge.done, str(judge.failure)) == (
        True,
        False,
        "the vendor's answer broke off before its end",
    )


@pytest.mark.parametrize("before", [b"", stream(said("Hello"))[: -len("x")]])
def test_an_error_is_one_before_and_after_the_first_word(before: bytes) -> None:
    judge = ResponsesJudge()
    for data in datas(before)[:-1]:
        judge.take(b"", data)
    judge.take(b"", datas(event("error", code="server_error", message="broke"))[0])
    assert isinstance(judge.failure, WorkerError)
    assert (judge.failure.status, judge.failure.message) == (500, "broke")


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (response(said("x")), None),
        (response(status="queued"), None),
        (response(status="failed", error={"code": "invalid_prompt", "message": "no"}), "no"),
        ({"error": {"message": "bad"}}, "bad"),
        ({}, "the vendor's answer has no output"),
    ],
)
def test_a_whole_body_is_an_answer_or_none(body: Any, failure: str | None) -> None:
    judge = ResponsesJudge()
    judge.whole(json.dumps(body).encode())
    judge.finish()
    assert judge.done == (failure is None)
    assert (None if judge.failure is None else str(judge.failure)) == failure


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_it_agrees_with_the_listener_on_what_is_whole(data: st.DataObject) -> None:
    told = datas(stream(thought("Why"), call(), said("x")))
    kept = [one for one in told if data.draw(st.integers(0, 9))]
    odd = data.draw(
        st.lists(
            st.sampled_from([b"[1]", b"x", b"[DONE]", b'{"error":{"message":"e"}}']), max_size=1
        )
    )
    at = data.draw(st.integers(0, len(kept)))
    shown = [*kept[:at], *odd, *kept[at:]]
    judge = ResponsesJudge()
    for one in shown:
        judge.take(b"", one)
    judge.finish()
    events = heard(b"data: " + one + b"\n\n" for one in shown)
    failed = isinstance(events[-1], Fail)
    # What stands behind the end, and garbage between words that nobody reads, matters to neither.
    assert failed == (judge.failure is not None) or b"x" in odd or b"[1]" in odd
