"""Errors in Google's envelope."""

import json

import pytest

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.dialects.google_errors import error_object, status_word
from support.answers.gemini_bodies import DIALECT


@pytest.mark.parametrize(
    ("kind", "code", "word"),
    [
        (ErrorKind.INVALID_REQUEST, 400, "INVALID_ARGUMENT"),
        (ErrorKind.UNAUTHENTICATED, 401, "UNAUTHENTICATED"),
        (ErrorKind.FORBIDDEN, 403, "PERMISSION_DENIED"),
        (ErrorKind.NOT_FOUND, 404, "NOT_FOUND"),
        (ErrorKind.CONFLICT, 409, "ABORTED"),
        (ErrorKind.TOO_LARGE, 413, "INVALID_ARGUMENT"),
        (ErrorKind.RATE_LIMITED, 429, "RESOURCE_EXHAUSTED"),
        (ErrorKind.CLIENT_GONE, 499, "CANCELLED"),
        (ErrorKind.INTERNAL, 500, "INTERNAL"),
        (ErrorKind.UPSTREAM_FAILED, 502, "UNAVAILABLE"),
        (ErrorKind.OVERLOADED, 503, "UNAVAILABLE"),
        (ErrorKind.UPSTREAM_TIMEOUT, 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_every_kind_has_its_status_and_its_word(kind: ErrorKind, code: int, word: str) -> None:
    error = SmgError(kind, "why")
    told = json.loads(DIALECT.error_body(error, "req_1"))
    message = "An internal error has occurred." if kind is ErrorKind.INTERNAL else "why"
    assert told == {"error": {"code": code, "message": message, "status": word}}
    assert DIALECT.error_status(error) == code


@pytest.mark.parametrize(("status", "word"), [(405, "INVALID_ARGUMENT"), (415, "INVALID_ARGUMENT"), (507, "INTERNAL")])  # fmt: skip
def test_other_statuses_have_the_word_of_their_class(status: int, word: str) -> None:
    assert status_word(status) == word


def test_nothing_is_501_because_clients_would_ask_again() -> None:
    error = SmgError(ErrorKind.UPSTREAM_FAILED, "the engine cannot", status=501)
    assert DIALECT.error_status(error) == 400
    told = json.loads(DIALECT.error_body(error, ""))["error"]
    assert (told["code"], told["status"]) == (400, "INVALID_ARGUMENT")


def test_a_place_is_a_field_violation() -> None:
    told = error_object(invalid("contents: is required", "contents"))
    assert told["details"] == [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "contents", "description": "contents: is required"}],
        }
    ]


@pytest.mark.parametrize(
    ("after_s", "told"), [(0.0, "0s"), (1.5, "1.5s"), (20.0, "20s"), (0.0004, "0s"), (3600.0, "60s"), (-1.0, "0s")]
)  # fmt: skip
def test_when_to_ask_again_is_told_where_these_clients_look(after_s: float, told: str) -> None:
    error = SmgError(ErrorKind.RATE_LIMITED, "slow down", retry_after_s=after_s)
    assert error_object(error)["details"] == [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": told}
    ]


def test_a_prompt_that_is_too_long_is_told_in_the_words_these_clients_know() -> None:
    told = error_object(prompt_too_long(12, 10, "contents"))
    assert told["message"] == (
        "The input token count (12) exceeds the maximum number of tokens allowed (10)."
    )
