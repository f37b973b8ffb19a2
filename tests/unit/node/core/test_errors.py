"""Errors: every kind has a status, a gRPC code and a word for it."""

import pytest

from smg_node.core.errors import (
    DEFAULT_CODE,
    GRPC_CODE,
    HTTP_STATUS,
    ErrorKind,
    SmgError,
    invalid,
    unsupported,
)


@pytest.mark.parametrize("table", [HTTP_STATUS, GRPC_CODE, DEFAULT_CODE])
def test_every_kind_is_in_every_table(table: dict[ErrorKind, object]) -> None:
    assert set(table) == set(ErrorKind)


def test_statuses_are_those_of_the_contract() -> None:
    assert {kind.name: status for kind, status in HTTP_STATUS.items()} == {
        "INVALID_REQUEST": 400,
        "UNAUTHENTICATED": 401,
        "FORBIDDEN": 403,
        "NOT_FOUND": 404,
        "CONFLICT": 409,
        "TOO_LARGE": 413,
        "RATE_LIMITED": 429,
        "CLIENT_GONE": 499,
        "INTERNAL": 500,
        "UPSTREAM_FAILED": 502,
        "OVERLOADED": 503,
        "UPSTREAM_TIMEOUT": 504,
    }


@pytest.mark.parametrize("kind", ErrorKind)
def test_what_is_not_said_follows_from_the_kind(kind: ErrorKind) -> None:
    error = SmgError(kind, "why")
    assert (error.status, error.code, error.where) == (HTTP_STATUS[kind], DEFAULT_CODE[kind], None)
    assert (error.message, str(error), error.retry_after_s) == ("why", "why", None)


def test_what_is_said_wins() -> None:
    error = SmgError(
        ErrorKind.INVALID_REQUEST, "m", where="a.b", code="c", status=415, retry_after_s=1.5
    )
    assert (error.where, error.code, error.status, error.retry_after_s) == ("a.b", "c", 415, 1.5)
    assert repr(error) == "SmgError(INVALID_REQUEST, 'm', where='a.b', code='c')"


def test_the_two_common_refusals_have_short_names() -> None:
    wrong, unable = invalid("m", "a"), unsupported("m", "a")
    assert (wrong.kind, wrong.code, wrong.where) == (
        ErrorKind.INVALID_REQUEST,
        "invalid_value",
        "a",
    )
    assert (unable.kind, unable.code) == (ErrorKind.INVALID_REQUEST, "unsupported_parameter")
    assert invalid("m", code="x").code == "x"
