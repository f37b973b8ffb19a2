"""The table of failures: what each kind is called in Responses, for a model, and in metrics."""

import pytest

from smg_node.mcp.failures import (
    FAILURE_ROWS,
    Failure,
    FailureKind,
    bare_status,
    crowded,
    lost,
    plain_text,
    prompt_text,
    refused,
    responses_error,
    responses_tool_error,
    timed_out,
    too_large,
    unreadable,
)


@pytest.mark.parametrize(
    ("failure", "error", "text", "outcome"),
    [
        (
            Failure(FailureKind.PROTOCOL, -32602, "no"),
            {"type": "mcp_protocol_error", "code": -32602, "message": "no"},
            "tool failed: no",
            "protocol",
        ),
        (
            bare_status(503),
            {
                "type": "http_error",
                "code": 503,
                "message": "the server answered 503 Service Unavailable",
            },
            "tool failed: the server answered 503 Service Unavailable",
            "http",
        ),
        (
            timed_out("late"),
            {"type": "http_error", "code": 504, "message": "late"},
            "tool failed: late",
            "timeout",
        ),
        (
            lost("gone", sent=True),
            {"type": "http_error", "code": 502, "message": "gone"},
            "tool failed: gone",
            "lost",
        ),
        (
            refused("a rule"),
            {"type": "mcp_protocol_error", "code": -32001, "message": "a rule"},
            "not run: a rule",
            "refused",
        ),
        (
            crowded("too many"),
            {"type": "http_error", "code": 429, "message": "429, not run: too many"},
            "tool failed: 429, not run: too many",
            "refused",
        ),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Failure) else "",
)
def test_each_row_of_the_table(
    failure: Failure, error: dict[str, object], text: str, outcome: str
) -> None:
    assert responses_error(failure) == error
    assert prompt_text(failure) == text
    assert failure.outcome == outcome


def test_every_kind_has_a_row() -> None:
    assert FAILURE_ROWS.keys() == set(FailureKind)


def test_a_token_that_ran_out_is_counted_apart() -> None:
    assert bare_status(401).outcome == "auth"
    assert Failure(FailureKind.PROTOCOL, -32001, "unauthorized", status=401).outcome == "auth"


def test_a_tool_that_says_that_it_failed_keeps_its_content() -> None:
    content = [{"type": "text", "text": "no"}]
    assert responses_tool_error(content) == {
        "type": "mcp_tool_execution_error",
        "content": content,
    }


def test_an_unknown_status_has_no_phrase() -> None:
    assert bare_status(799).message == "the server answered 799"


def test_failures_of_answers_say_what_was_wrong_with_them() -> None:
    assert unreadable("x").code == -32700
    assert "mcp.answer_bytes_max" in too_large(5).message
    assert lost("a", sent=False).with_note("b").message == "a; b"


def test_text_of_strangers_is_cut_and_cleaned() -> None:
    assert plain_text("a\x00\x1b\u202eb\tc\nd") == "a   b\tc\nd"
    assert plain_text("x" * 10, 5) == "xxxx…"
