"""The dialects by name, and the error envelope they share."""

import json

import pytest

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.dialects.openai_errors import error_body, error_frame, error_type
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.registry import CHAT, COMPLETIONS, Dialects


def test_every_dialect_is_found_under_its_own_name() -> None:
    registry = Dialects(ReaderOptions())
    assert list(registry)[:2] == [CHAT, COMPLETIONS] == ["chat", "completions"]
    assert len(list(registry)) == len(registry)
    assert all(registry[name].name == name for name in registry)


def test_options_reach_the_readers() -> None:
    body = {"model": "m", "prompt": "x", "messages": [{"role": "user", "content": "x"}], "n": 3}
    for name in (CHAT, COMPLETIONS):
        Dialects(ReaderOptions())[name].read(body)
        with pytest.raises(SmgError, match="n: must be between 1 and 2"):
            Dialects(ReaderOptions(n_max=2))[name].read(body)


def test_an_envelope_has_four_fields() -> None:
    error = invalid("stop[1]: must not be empty", "stop[1]")
    for name in (CHAT, COMPLETIONS):
        body = Dialects(ReaderOptions())[name].error_body(error, "req_1")
        assert json.loads(body) == {
            "error": {
                "message": "stop[1]: must not be empty",
                "type": "invalid_request_error",
                "param": "stop[1]",
                "code": "invalid_value",
            }
        }


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_kind_has_a_type(kind: ErrorKind) -> None:
    error = SmgError(kind, "why")
    expected = (
        "rate_limit_error"
        if error.status == 429
        else "server_error"
        if error.status >= 500
        else "invalid_request_error"
    )
    shown = json.loads(error_body(error))["error"]
    assert (shown["type"], shown["code"]) == (expected, error.code)
    assert error_frame(error) == b"data: " + error_body(error) + b"\n\n"


def test_our_own_mistakes_are_not_described_to_strangers() -> None:
    shown = json.loads(error_body(SmgError(ErrorKind.INTERNAL, "secret state")))["error"]
    assert "secret" not in shown["message"]
    assert shown["type"] == "server_error"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "invalid_request_error"),
        (404, "invalid_request_error"),
        (429, "rate_limit_error"),
        (501, "server_error"),
        (503, "server_error"),
    ],
)
def test_a_status_has_a_type(status: int, expected: str) -> None:
    assert error_type(status) == expected
