"""Completions: the forms of a prompt, and what differs from Chat Completions."""

from array import array
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import GenerateRequest, TextPrompt, TokenPrompt
from smg_node.dialects.completions.dialect import CompletionsDialect
from smg_node.dialects.completions.reader import PARAMETERS
from smg_node.dialects.options import ReaderOptions

BASE = {"model": "m", "prompt": "hi"}


def read(options: ReaderOptions | None = None, /, **parameters: Any) -> GenerateRequest:
    body = {**BASE, **parameters}
    return CompletionsDialect(options or ReaderOptions()).read(body).request


def refusal(options: ReaderOptions | None = None, /, **parameters: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        read(options, **parameters)
    return caught.value


def ids(values: list[int], where: str) -> TokenPrompt:
    return TokenPrompt(array("I", values), where)


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("", (TextPrompt(""),)),
        ("hi", (TextPrompt("hi"),)),
        (["a", ""], (TextPrompt("a", where="prompt[0]"), TextPrompt("", where="prompt[1]"))),
        ([1, 4294967295], (ids([1, 4294967295], "prompt"),)),
        ([[1], [2, 3]], (ids([1], "prompt[0]"), ids([2, 3], "prompt[1]"))),
    ],
)
def test_a_prompt_has_four_forms(prompt: Any, prompts: Any) -> None:
    assert read(prompt=prompt).prompts == prompts


@pytest.mark.parametrize(
    ("prompt", "where", "code"),
    [
        (None, "prompt", "missing_required_parameter"),
        (1, "prompt", "invalid_type"),
        ({}, "prompt", "invalid_type"),
        ([], "prompt", "invalid_value"),
        ([None], "prompt[0]", "invalid_type"),
        (["a", 1], "prompt[1]", "invalid_type"),
        ([1, "a"], "prompt[1]", "invalid_type"),
        ([1, True], "prompt[1]", "invalid_type"),
        ([1, 1.5], "prompt[1]", "invalid_type"),
        ([1, -1], "prompt[1]", "invalid_value"),
        ([2**32], "prompt[0]", "invalid_value"),
        ([[1], []], "prompt[1]", "invalid_value"),
        ([[1], "a"], "prompt[1]", "invalid_type"),
        ([[1], [1, None]], "prompt[1][1]", "invalid_type"),
        ([[1], [2, 10**30]], "prompt[1][1]", "invalid_value"),
    ],
)
def test_a_mistake_in_a_prompt_has_a_path(prompt: Any, where: str, code: str) -> None:
    error = refusal(prompt=prompt)
    assert (error.where, error.code) == (where, code)


def test_prompts_times_n_are_limited() -> None:
    assert read(prompt=["a"] * 64, n=2).choices == 128
    assert refusal(prompt=["a"] * 65, n=2).where == "prompt"
    assert refusal(prompt=["a"] * 129).where == "prompt"
    assert refusal(ReaderOptions(choices_max=1), prompt=["a"], n=2).where == "prompt"


def test_an_answer_is_short_unless_asked_otherwise() -> None:
    assert read().sampling.max_tokens == 16
    assert read(max_tokens=None).sampling.max_tokens == 16
    assert read(max_tokens=5).sampling.max_tokens == 5
    assert read(min_tokens=40).sampling.max_tokens == 40
    assert read(max_tokens=0).sampling.max_tokens == 0
    assert read(max_tokens=0, max_completion_tokens=3).sampling.max_tokens == 3
    assert refusal(max_tokens=-1).where == "max_tokens"
    assert refusal(max_tokens=0, min_tokens=1).where == "min_tokens"


@pytest.mark.parametrize(("logprobs", "expected"), [(None, None), (0, 0), (5, 5)])
def test_log_probabilities_are_a_number(logprobs: int | None, expected: int | None) -> None:
    assert read(logprobs=logprobs).sampling.logprobs == expected


@pytest.mark.parametrize("logprobs", [-1, 6, True, 1.5])
def test_only_so_many_alternatives_exist(logprobs: Any) -> None:
    assert refusal(logprobs=logprobs).where == "logprobs"


def test_an_echo_with_log_probabilities_wants_those_of_the_prompt() -> None:
    sampling = read(echo=True, logprobs=2, stream=True).sampling
    assert (sampling.prompt_logprobs, sampling.path("prompt_logprobs")) == (2, "logprobs")
    assert read(echo=True, logprobs=2, prompt_logprobs=4).sampling.prompt_logprobs == 4
    assert read(echo=True).sampling.prompt_logprobs is None
    assert read(echo=True).echo


def test_special_tokens_are_added_unless_the_client_says_no() -> None:
    assert read(add_special_tokens=False).prompts == (TextPrompt("hi", add_special_tokens=False),)
    assert read(add_special_tokens=True).prompts == (TextPrompt("hi"),)
    assert refusal(add_special_tokens=1).code == "invalid_type"


def test_nothing_can_fill_in_the_middle() -> None:
    assert refusal(suffix="x").code == "unsupported_parameter"
    assert read(suffix="").ignored == ()


def test_best_of_must_equal_n() -> None:
    assert read(best_of=2, n=2).choices == 2
    assert refusal(best_of=2).code == "unsupported_parameter"
    assert refusal(best_of=2).where == "best_of"


def test_prompt_log_probabilities_cannot_be_streamed() -> None:
    assert refusal(stream=True, prompt_logprobs=1).code == "unsupported_parameter"


def test_what_belongs_to_chats_is_unknown_here() -> None:
    assert read(tools=[], messages=[]).ignored == ("tools", "messages")
    assert refusal(ReaderOptions(unknown_parameters="reject"), tools=[]).code == "unknown_parameter"


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - {"model", "prompt"}))
def test_null_means_the_same_as_nothing(name: str) -> None:
    assert read(**{name: None}) == read()


@pytest.mark.parametrize("name", ["model", "prompt"])
def test_what_is_required_must_be_there(name: str) -> None:
    body = {key: value for key, value in BASE.items() if key != name}
    with pytest.raises(SmgError) as caught:
        CompletionsDialect(ReaderOptions()).read(body)
    assert (caught.value.code, caught.value.where) == ("missing_required_parameter", name)
