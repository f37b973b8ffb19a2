"""Every status has one meaning, and blame falls where it belongs."""

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.transport.grpc_status import (
    CONSTRAINT_TRAILER,
    DEADLINE_CODE,
    MEANINGS,
    RELAYED_MAX_BYTES,
    Verdict,
    smg_error,
    verdict,
)
from smg_node.engines.transport.transport import StatusCode, TransportError

SECRET = "10.0.0.7:5000 /srv/models/private"

TABLE = {
    StatusCode.OK: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.CANCELLED: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.UNKNOWN: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.INVALID_ARGUMENT: (ErrorKind.INVALID_REQUEST, 400, True, Verdict.NEITHER),
    StatusCode.DEADLINE_EXCEEDED: (ErrorKind.UPSTREAM_TIMEOUT, 504, False, Verdict.FAILURE),
    StatusCode.NOT_FOUND: (ErrorKind.NOT_FOUND, 404, False, Verdict.NEITHER),
    StatusCode.ALREADY_EXISTS: (ErrorKind.INTERNAL, 500, False, Verdict.NEITHER),
    StatusCode.PERMISSION_DENIED: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.RESOURCE_EXHAUSTED: (ErrorKind.OVERLOADED, 503, False, Verdict.PRESSURE),
    StatusCode.FAILED_PRECONDITION: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.ABORTED: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.OUT_OF_RANGE: (ErrorKind.INVALID_REQUEST, 400, True, Verdict.NEITHER),
    StatusCode.UNIMPLEMENTED: (ErrorKind.UPSTREAM_FAILED, 501, False, Verdict.NEITHER),
    StatusCode.INTERNAL: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.UNAVAILABLE: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.DATA_LOSS: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
    StatusCode.UNAUTHENTICATED: (ErrorKind.UPSTREAM_FAILED, 502, False, Verdict.FAILURE),
}


def test_every_status_has_a_meaning_and_every_meaning_is_tested() -> None:
    assert set(MEANINGS) == set(StatusCode) == set(TABLE)


@pytest.mark.parametrize("status", StatusCode)
def test_the_table_of_statuses(status: StatusCode) -> None:
    kind, http_status, relayed, judged = TABLE[status]

    error = smg_error(TransportError(status, SECRET))

    assert (error.kind, error.status) == (kind, http_status)
    assert (SECRET in error.message) is relayed
    assert verdict(error) is judged
    assert (error.retry_after_s is not None) is (http_status in (429, 503))


def test_relayed_text_is_cut_to_two_kibibytes_of_whole_characters() -> None:
    error = smg_error(TransportError(StatusCode.INVALID_ARGUMENT, "é" * 5000))

    relayed = error.message.partition(": ")[2]
    assert RELAYED_MAX_BYTES - 2 <= len(relayed.encode()) <= RELAYED_MAX_BYTES
    assert set(relayed) == {"é", "…"}


def test_text_that_fits_is_relayed_whole() -> None:
    text = "x" * RELAYED_MAX_BYTES
    assert smg_error(TransportError(StatusCode.INVALID_ARGUMENT, text)).message.endswith(text)


def test_text_that_is_no_unicode_is_relayed_without_harm() -> None:
    error = smg_error(TransportError(StatusCode.INVALID_ARGUMENT, "\ud800" * 3000))
    assert error.message.encode("utf-8", "replace")


def test_a_constraint_that_failed_is_the_callers_only_if_the_engine_says_so() -> None:
    trailers = {CONSTRAINT_TRAILER: "engine"}
    ours = smg_error(TransportError(StatusCode.FAILED_PRECONDITION, "no such state", trailers))
    theirs = smg_error(TransportError(StatusCode.FAILED_PRECONDITION, "no such state"))

    assert (ours.status, ours.code, verdict(ours)) == (400, "constraint_failed", Verdict.NEITHER)
    assert "no such state" in ours.message
    assert theirs.status == 502


def test_a_request_over_the_servers_message_limit_is_too_large_and_not_pressure() -> None:
    message = "SERVER: Received message larger than max (3000 vs. 1000)"
    error = smg_error(TransportError(StatusCode.RESOURCE_EXHAUSTED, message))
    assert (error.kind, verdict(error)) == (ErrorKind.TOO_LARGE, Verdict.NEITHER)


def test_only_a_requests_own_deadline_is_a_timeout_nobody_is_blamed_for() -> None:
    def timeout(code: str) -> SmgError:
        return SmgError(ErrorKind.UPSTREAM_TIMEOUT, "late", code=code)

    assert verdict(timeout(DEADLINE_CODE)) is Verdict.NEITHER
    assert verdict(timeout("upstream_stalled")) is Verdict.FAILURE


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_kind_of_error_has_a_verdict(kind: ErrorKind) -> None:
    expected = {
        ErrorKind.OVERLOADED: Verdict.PRESSURE,
        ErrorKind.RATE_LIMITED: Verdict.PRESSURE,
        ErrorKind.UPSTREAM_FAILED: Verdict.FAILURE,
        ErrorKind.UPSTREAM_TIMEOUT: Verdict.FAILURE,
    }
    assert verdict(SmgError(kind, "x")) is expected.get(kind, Verdict.NEITHER)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "The input (9 tokens) is longer than the model's context length (8 tokens).",
            "prompt is too long: 9 tokens > 8 maximum",
        ),
        (
            "Your input exceeds the context window",
            "prompt is too long for the engine: Your input exceeds the context window",
        ),
    ],
)
def test_an_engine_that_finds_a_prompt_too_long_is_told_in_known_words(
    words: str, message: str
) -> None:
    error = smg_error(TransportError(StatusCode.INVALID_ARGUMENT, words))
    assert (error.message, error.code, error.status) == (message, "context_length_exceeded", 400)
    assert smg_error(TransportError(StatusCode.INTERNAL, words)).code == "upstream_error"
