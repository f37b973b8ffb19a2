"""Errors as Google's clients read them."""

import json

import pytest

from smg_node.core.errors import ErrorKind, Excess, SmgError, invalid
from smg_node.dialects.interactions.errors import InteractionErrors


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (invalid("no", "input"), 400, "INVALID_ARGUMENT"),
        (invalid("no", "x", "previous_interaction_not_found"), 400, "FAILED_PRECONDITION"),
        (SmgError(ErrorKind.UNAUTHENTICATED, "no"), 401, "UNAUTHENTICATED"),
        (SmgError(ErrorKind.FORBIDDEN, "no"), 403, "PERMISSION_DENIED"),
        (SmgError(ErrorKind.NOT_FOUND, "no"), 404, "NOT_FOUND"),
        (SmgError(ErrorKind.CONFLICT, "no"), 409, "ABORTED"),
        (SmgError(ErrorKind.TOO_LARGE, "no"), 413, "INVALID_ARGUMENT"),
        (SmgError(ErrorKind.RATE_LIMITED, "no"), 429, "RESOURCE_EXHAUSTED"),
        (SmgError(ErrorKind.UPSTREAM_FAILED, "no"), 502, "UNAVAILABLE"),
        (SmgError(ErrorKind.UPSTREAM_FAILED, "no", status=501), 400, "INVALID_ARGUMENT"),
        (SmgError(ErrorKind.OVERLOADED, "no"), 503, "UNAVAILABLE"),
        (SmgError(ErrorKind.UPSTREAM_TIMEOUT, "no"), 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_each_kind_has_googles_word(error: SmgError, code: int, status: str) -> None:
    errors = InteractionErrors()
    said = json.loads(errors.error_body(error, "req_1"))["error"]
    details = said.pop("details", [])
    assert said == {"code": code, "message": "no", "status": status}
    fields = [each["field"] for told in details for each in told["fieldViolations"]]
    assert fields == ([error.where] if error.where else [])
    assert errors.error_status(error) == code


def test_a_mistake_of_ours_tells_nothing_of_it() -> None:
    body = json.loads(InteractionErrors().error_body(SmgError(ErrorKind.INTERNAL, "secret"), ""))
    assert (body["error"]["status"], "secret" in str(body)) == ("INTERNAL", False)


def test_a_prompt_that_is_too_long_is_told_in_the_words_clients_look_for() -> None:
    error = SmgError(
        ErrorKind.INVALID_REQUEST, "x", code="context_length_exceeded", excess=Excess(9, 8)
    )
    said = json.loads(InteractionErrors().error_body(error, ""))["error"]
    assert said == {
        "code": 400,
        "message": "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        "status": "FAILED_PRECONDITION",
    }
