"""The OpenAI error envelope, and the words in it by which clients know what happened."""

import json

import pytest

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.dialects.openai_errors import error_body, error_frame, error_object

TOO_LONG = {
    "message": (
        "prompt is too long: 9 tokens > 7 maximum. This model's maximum context length is 8 tokens;"
        " your input exceeds the context window of this model."
    ),
    "type": "invalid_request_error",
    "param": "messages",
    "code": "context_length_exceeded",
}
# What langchain-openai 1.7.4 (answers, then streams), litellm 1.110.2 and Claude Code 2.1.332 look for.
LOOKED_FOR = (
    "context_length_exceeded",
    "prompt is too long",
    "exceeds the context window",
    "This model's maximum context length is",
    "prompt is too long: 9 tokens > 7 maximum",
)


def test_a_prompt_that_is_too_long_is_told_in_the_words_that_clients_look_for() -> None:
    error = prompt_too_long(9, 7, "messages", context=8)
    assert error_object(error) == TOO_LONG
    assert json.loads(error_body(error)) == {"error": TOO_LONG}
    assert error_frame(error) == b"data: " + error_body(error) + b"\n\n"
    assert all(words in error_body(error).decode() for words in LOOKED_FOR)


def test_without_a_known_context_the_longest_prompt_stands_for_it() -> None:
    message = error_object(prompt_too_long(9, 7, None))["message"]
    assert "This model's maximum context length is 7 tokens" in message


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("no room", "prompt is too long: no room"),
        ("prompt is too long for the worker", "prompt is too long for the worker"),
        ("this model's maximum context length is 8", "this model's maximum context length is 8"),
    ],
)
def test_other_words_for_it_keep_theirs_and_get_what_is_missing(words: str, told: str) -> None:
    assert error_object(invalid(words, "input", "context_length_exceeded"))["message"] == told


def test_other_errors_have_their_own_words_alone() -> None:
    assert error_object(invalid("n is odd", "n"))["message"] == "n is odd"
    ours = error_object(SmgError(ErrorKind.INTERNAL, "secret", code="context_length_exceeded"))
    assert "secret" not in ours["message"]
