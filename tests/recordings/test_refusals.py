"""Real refusals of vendors, recorded by others: each is of the class that a reader of it would say."""

from typing import Final

from smg_node.providers.failures.failure_class import FailureClass
from smg_node.providers.vendor_errors import Retry, vendor_failure
from support.recordings.recorded_answer import RecordedAnswer, recorded_answers

# Status and words of a refusal, the first that fit: its class.
CLASSES: Final = (
    (400, b"API key not valid", FailureClass.NOT_LET_IN),
    (400, b"model identifier is invalid", FailureClass.MODEL_UNKNOWN),
    (400, b"model_not_found", FailureClass.MODEL_UNKNOWN),
    (400, b"", FailureClass.CALLER),
    (401, b"", FailureClass.NOT_LET_IN),
    (404, b"", FailureClass.MODEL_UNKNOWN),
)
KINDS: Final = {"google": "gemini"}
LOST_PAIR: Final = b"without its required"


def refusals() -> list[RecordedAnswer]:
    return [answer for answer in recorded_answers() if not answer.good]


def expected(answer: RecordedAnswer) -> FailureClass:
    return next(
        failure
        for status, words, failure in CLASSES
        if status == answer.status and words in answer.body
    )


def test_every_refusal_has_its_class() -> None:
    assert len(refusals()) >= 55
    assert len({answer.vendor for answer in refusals()}) >= 7
    wrong = []
    for answer in refusals():
        kind = KINDS.get(answer.vendor, answer.vendor)
        found = vendor_failure(answer.status, answer.headers, answer.body, kind=kind, now=0.0)
        if found.failure is not expected(answer):
            wrong.append((answer.name, found))
    assert wrong == []


def test_a_thought_without_what_follows_it_is_left_out_once() -> None:
    [answer] = [one for one in refusals() if LOST_PAIR in one.body]
    found = vendor_failure(answer.status, answer.headers, answer.body, kind="openai", now=0.0)
    assert found.retry is Retry.WITHOUT_STATE
