"""Judge of vendors' chat answers: when an answer has begun, whether it is whole, what it cost."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import Fail, Usage
from smg_node.dialects.chat.provider.judge import ChatJudge
from smg_node.dialects.worker_errors import WorkerError
from support.answers.chat_chunks import DONE, call, calls, chunk, event, read, used

ROLE = chunk(role="assistant", content="")


def data_of(told: bytes) -> bytes:
    return told.removeprefix(b"data: ").rstrip()


def judged(*told: bytes, quirks: tuple[str, ...] = ()) -> ChatJudge:
    judge = ChatJudge(quirks)
    for one in told:
        judge.take(b"", data_of(one))
    judge.finish()
    return judge


def verdict(judge: ChatJudge) -> tuple[bool, bool, str]:
    return judge.begun, judge.done, "" if judge.failure is None else str(judge.failure)


BROKE_OFF = "the vendor ended its answer before the end of it"
GAVE_UP = "the vendor gave up in the middle of its answer"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([ROLE], (False, False, BROKE_OFF)),
        ([ROLE, chunk(content="x")], (True, False, BROKE_OFF)),
        ([ROLE, chunk(content="x"), DONE], (True, False, BROKE_OFF)),
        ([ROLE, chunk(content="x"), chunk("stop")], (True, True, "")),
        ([ROLE, chunk(content="x"), chunk("stop"), used(), DONE], (True, True, "")),
        ([chunk(refusal="no"), chunk("stop"), DONE], (True, True, "")),
        ([chunk(content="x"), chunk("error")], (True, False, GAVE_UP)),
        (
            [chunk(content="x"), chunk("stop"), chunk(content="y", index=1)],
            (True, False, BROKE_OFF),
        ),
        (
            [
                chunk(content="x"),
                chunk(content="y", index=1),
                chunk("stop"),
                chunk("stop", index=1),
            ],
            (True, True, ""),
        ),
        ([], (False, False, BROKE_OFF)),
        ([b"data: [1]\n\n"], (False, False, "the vendor's answer is no object of JSON")),
        ([b"data: x\n\n"], (False, False, "the vendor's answer is no JSON")),
    ],
)
def test_an_answer_is_whole_when_every_choice_has_finished(
    told: list[bytes], expected: tuple[bool, bool, str]
) -> None:
    assert verdict(judged(*told)) == expected


def test_a_call_begins_an_answer() -> None:
    judge = ChatJudge()
    judge.take(b"", data_of(ROLE))
    assert not judge.begun
    judge.take(b"", data_of(calls(call(0, name="f", call_id="c"))))
    assert judge.begun


def test_a_vendor_may_give_no_reason() -> None:
    told = [ROLE, chunk(content="x"), chunk(""), used(5, 3), DONE]
    judge = judged(*told, quirks=("finish_optional",))
    assert (verdict(judge), judge.usage) == ((True, True, ""), Usage(5, 3, 0))
    assert verdict(judged(*told))[2] == BROKE_OFF
    assert verdict(judged(*told[:-1], quirks=("finish_optional",)))[2] == BROKE_OFF


def test_an_error_counts_before_and_after_the_first_word() -> None:
    error = event({"error": {"message": "bad", "status_code": 400}})
    for before in ([], [ROLE], [chunk(content="x")], [chunk(content="x"), chunk("stop")]):
        judge = judged(*before, error)
        assert isinstance(judge.failure, WorkerError)
        assert (judge.failure.status, judge.failure.message) == (400, "bad")


def test_an_event_that_is_called_an_error_is_one() -> None:
    judge = ChatJudge()
    judge.take(b"", data_of(chunk(content="x")))
    judge.take(b"error", b'{"message": "broke"}')
    assert isinstance(judge.failure, WorkerError)
    assert judge.failure.message == "broke"


def test_usage_is_read_wherever_it_stands() -> None:
    groq = {"id": "x", "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": groq}
    assert judged(chunk(content="x"), event(last)).usage == Usage(5, 2, 0)
    assert judged(chunk(content="x"), chunk("stop"), used(4, 3), DONE).usage == Usage(4, 3, 0)


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}, ""),
        ({"choices": [{"message": {"content": "x"}, "finish_reason": None}]}, BROKE_OFF),
        ({"choices": []}, BROKE_OFF),
        ({"error": {"message": "bad"}}, "bad"),
        ({"id": 1}, "the vendor's answer has no choices"),
        ([], "the vendor's answer is no object of JSON"),
    ],
)
def test_a_whole_body_is_an_answer_or_none(body: Any, failure: str) -> None:
    judge = ChatJudge()
    judge.whole(json.dumps(body).encode())
    assert verdict(judge)[1:] == (not failure, failure)


CALLED = calls(call(0, "{}", name="f", call_id="c"))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_it_agrees_with_the_listener_on_what_is_whole(data: st.DataObject) -> None:
    pieces = [
        ROLE, chunk(content="x"), chunk("stop"), chunk("length", content="y"), used(), DONE,
        chunk(refusal="no"), event({"error": {"message": "e"}}), event({"choices": []}),
        CALLED,
    ]  # fmt: skip
    told = data.draw(st.lists(st.sampled_from(pieces), max_size=6))
    if CALLED in told:
        # A call that goes on when it was over is for who reads calls; the judge does not.
        first = told.index(CALLED)
        told = told[: first + 1] + [one for one in told[first:] if one != CALLED]
    quirks = ("finish_optional",) if data.draw(st.booleans()) else ()
    if DONE in told:
        told = told[: told.index(DONE) + 1]
    failed = isinstance(read(told, quirks=quirks)[-1], Fail)
    judge = judged(*told, quirks=quirks)
    assert failed == (judge.failure is not None)
