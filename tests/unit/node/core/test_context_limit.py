"""Prompts that are too long: our words and numbers for it, and those of engines and servers."""

import pytest

from smg_node.core.context_limit import excess_in, is_too_long_message, prompt_too_long
from smg_node.core.errors import Excess


def test_the_error_has_the_words_that_clients_look_for_and_its_numbers() -> None:
    error = prompt_too_long(5_001, 4_000, "messages", context=4_096)
    assert error.message == "prompt is too long: 5001 tokens > 4000 maximum"
    assert (error.status, error.code, error.where) == (400, "context_length_exceeded", "messages")
    assert error.excess == Excess(5_001, 4_000, 4_096)


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the"
            " messages, 100 in the completion). Please reduce the length of the messages or completion.",
            (4900, 4096),
        ),
        (
            "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens."
            " Please reduce the length of the input messages.",
            (5000, 4096),
        ),
        (
            "You passed 5001 input tokens and requested 100 output tokens. However, the model's context length is"
            " only 4096 tokens, resulting in a maximum input length of 3996 tokens.",
            (5001, 4096),
        ),
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that"
            " `max_model_len` is no smaller than the number of text tokens.",
            (5000, 4096),
        ),
        (
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            (5000, 4096),
        ),
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total"
            " of 5000 tokens: 4900 tokens from the input messages and 100 tokens for the completion.",
            (4900, 4096),
        ),
        (
            "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input or"
            " enable --allow-auto-truncate.",
            (5000, 4090),
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", (210000, 200000)),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
            (300000, 272000),
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100"
            " `max_new_tokens`",
            (5000, 4096),
        ),
        (
            "the request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            (5000, 4096),
        ),
        ("Your input exceeds the context window of this model.", None),
        ("the request exceeds the available context size. try increasing the context size", None),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            None,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the"
            " messages, 1000 in the completion).",
            None,
        ),
    ],
)
def test_engines_words_are_known_with_their_numbers(
    words: str, numbers: tuple[int, int] | None
) -> None:
    assert is_too_long_message(words)
    expected = None if numbers is None else Excess(*numbers, numbers[1])
    assert excess_in(words) == expected


@pytest.mark.parametrize(
    "words",
    [
        "",
        "temperature must be between 0 and 2",
        "max_tokens must be at least 1, got 0",
        "the stop string is too long",
        "string too long: user has 300 characters",
        "The model's context is fine",
        "rate limit exceeded: 5000 tokens per minute",
    ],
)
def test_other_refusals_are_not_taken_for_it(words: str) -> None:
    assert not is_too_long_message(words)


def test_very_long_words_are_read_in_part_only() -> None:
    assert not is_too_long_message("x" * 5_000 + "prompt is too long")
    assert is_too_long_message("prompt is too long" + "(" * 1_000_000)
    assert excess_in("prompt is too long: " + "9" * 100 + " tokens > 1 maximum") is None
