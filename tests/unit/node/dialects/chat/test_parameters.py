"""Every parameter of Chat Completions: what it becomes, and that null is nothing."""

from typing import Any

import pytest

from smg_node.core.generation.request import ChatPrompt, Thinking
from smg_node.dialects.chat.reader import PARAMETERS
from smg_node.dialects.options import ReaderOptions
from support.answers.chat_bodies import prompt_of, read, refusal, request_of

# ── What parameters become ───────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("max_tokens", 1, "max_tokens", 1),
        ("max_tokens", 10**12, "max_tokens", 2**31 - 1),
        ("max_completion_tokens", 7, "max_tokens", 7),
        ("temperature", 0, "temperature", 0.0),
        ("temperature", 2, "temperature", 2.0),
        ("top_p", 1, "top_p", 1.0),
        ("top_p", 0.001, "top_p", 0.001),
        ("top_k", -1, "top_k", -1),
        ("top_k", 0, "top_k", -1),
        ("top_k", 40, "top_k", 40),
        ("min_p", 0, "min_p", 0.0),
        ("min_p", 1, "min_p", 1.0),
        ("frequency_penalty", -2, "frequency_penalty", -2.0),
        ("presence_penalty", 2, "presence_penalty", 2.0),
        ("repetition_penalty", 2, "repetition_penalty", 2.0),
        ("n", 16, "n", 16),
        ("seed", -(2**63), "seed", -(2**63)),
        ("seed", 2**63 - 1, "seed", 2**63 - 1),
        ("stop", "END", "stop", ("END",)),
        ("stop", ["a", "b", "a"], "stop", ("a", "b")),
        ("stop", [], "stop", ()),
        ("stop", "x" * 256, "stop", ("x" * 256,)),
        ("stop_token_ids", [2, 1, 2], "stop_token_ids", (2, 1)),
        ("stop_token_ids", [], "stop_token_ids", ()),
        ("ignore_eos", True, "ignore_eos", True),
        ("min_tokens", 3, "min_tokens", 3),
        ("no_stop_trim", True, "keep_stop", True),
        ("include_stop_str_in_output", True, "keep_stop", True),
        ("skip_special_tokens", False, "skip_special_tokens", False),
        ("spaces_between_special_tokens", False, "spaces_between_special_tokens", False),
        (
            "logit_bias",
            {"0": -100, "4294967295": 100},
            "logit_bias",
            {0: -100.0, 4294967295: 100.0},
        ),
        ("logit_bias", {}, "logit_bias", {}),
        ("logprobs", True, "logprobs", 0),
        ("logprobs", False, "logprobs", None),
        ("top_logprobs", 0, "logprobs", None),
        ("prompt_logprobs", 20, "prompt_logprobs", 20),
        ("lora_path", "adapter", "adapter", "adapter"),
        ("lora_id", "adapter", "adapter", "adapter"),
    ],
)
def test_a_sampling_parameter_fills_its_field(
    name: str, value: Any, field: str, expected: Any
) -> None:
    sampling = request_of(**{name: value}).sampling
    assert getattr(sampling, field) == expected
    if expected:
        assert sampling.path(field) == name


def test_what_is_not_said_is_left_to_the_model() -> None:
    sampling = request_of().sampling
    assert sampling.max_tokens is None
    assert sampling.temperature is None
    assert sampling.top_p is None
    assert sampling.top_k is None
    assert sampling.min_p is None
    assert sampling.repetition_penalty is None
    assert sampling.seed is None
    assert (sampling.n, sampling.stop, sampling.logprobs) == (1, (), None)


@pytest.mark.parametrize(
    "order", [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
def test_the_newer_name_of_the_length_wins_in_any_order(order: tuple[str, str]) -> None:
    values = {"max_tokens": 5, "max_completion_tokens": 9}
    sampling = request_of(**{name: values[name] for name in order}).sampling
    assert sampling.max_tokens == 9
    assert sampling.path("max_tokens") == "max_completion_tokens"


@pytest.mark.parametrize("order", [("logprobs", "top_logprobs"), ("top_logprobs", "logprobs")])
def test_alternatives_go_with_log_probabilities_in_any_order(order: tuple[str, str]) -> None:
    values: dict[str, Any] = {"logprobs": True, "top_logprobs": 5}
    assert request_of(**{name: values[name] for name in order}).sampling.logprobs == 5


@pytest.mark.parametrize(
    ("parameters", "field", "expected"),
    [
        ({"stream": True}, "stream", True),
        ({"stream": False}, "stream", False),
        ({}, "stream", False),
        ({"truncate_prompt_tokens": -1}, "truncate_prompt_tokens", -1),
        ({"truncate_prompt_tokens": 1}, "truncate_prompt_tokens", 1),
        ({"prompt_cache_key": "k"}, "routing_key", "k"),
        ({"return_token_ids": True}, "prompt_ids", True),
        ({"model": "org/base:adapter"}, "model", "org/base:adapter"),
    ],
)
def test_a_request_parameter_fills_its_field(
    parameters: dict[str, Any], field: str, expected: Any
) -> None:
    assert getattr(request_of(**parameters), field) == expected


@pytest.mark.parametrize(
    ("parameters", "field", "expected"),
    [
        ({"stream": True, "stream_options": {"include_usage": True}}, "include_usage", True),
        (
            {"stream": True, "stream_options": {"continuous_usage_stats": True}},
            "continuous_usage",
            True,
        ),
        ({"stream": True, "stream_options": {}}, "include_usage", False),
        ({"metadata": {"a": "b" * 512}}, "metadata", {"a": "b" * 512}),
        ({"service_tier": "default"}, "service_tier", True),
        ({"return_token_ids": True}, "token_ids", True),
        ({"return_tokens_as_token_ids": True}, "tokens_as_ids", True),
        ({"separate_reasoning": False}, "separate_reasoning", False),
        ({"include_reasoning": False}, "include_reasoning", False),
        ({"stream_reasoning": False}, "stream_reasoning", False),
        ({"functions": [{"name": "f"}]}, "legacy_call", True),
        ({}, "legacy_call", False),
    ],
)
def test_a_parameter_of_the_answer_fills_the_view(
    parameters: dict[str, Any], field: str, expected: Any
) -> None:
    assert getattr(read(**parameters).view, field) == expected


@pytest.mark.parametrize(
    ("parameters", "field", "expected"),
    [
        ({"add_generation_prompt": False}, "add_generation_prompt", False),
        ({"add_special_tokens": True}, "add_special_tokens", True),
        ({}, "add_special_tokens", False),
        ({"documents": [{"title": "t", "text": "x"}]}, "documents", ({"title": "t", "text": "x"},)),
        ({"documents": []}, "documents", None),
        ({"chat_template_kwargs": {"a": [1]}}, "kwargs", {"a": [1]}),
        ({"reasoning_effort": "high"}, "thinking", Thinking("high")),
        ({"reasoning_effort": "high"}, "kwargs", {}),
        ({"reasoning_effort": 0.5}, "thinking", Thinking(number=0.5)),
        ({"enable_thinking": True}, "thinking", Thinking(on=True, where="enable_thinking")),
        ({"thinking": False}, "thinking", Thinking(on=False, where="thinking")),
        (
            {"thinking": {"type": "disabled"}},
            "thinking",
            Thinking(on=False, where="thinking"),
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1025},
            "thinking",
            Thinking(on=True, budget=1024, where="thinking"),
        ),
        (
            {"thinking": {"type": "adaptive"}},
            "thinking",
            Thinking(on=True, adaptive=True, where="thinking"),
        ),
        ({"verbosity": "low"}, "kwargs", {"verbosity": "low"}),
        (
            {"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "own"}},
            "kwargs",
            {"reasoning_effort": "own"},
        ),
        (
            {"reasoning_effort": "none", "thinking": True},
            "thinking",
            Thinking("none", on=True, where="thinking"),
        ),
    ],
)
def test_a_template_parameter_fills_the_prompt(
    parameters: dict[str, Any], field: str, expected: Any
) -> None:
    assert getattr(prompt_of(**parameters), field) == expected


def test_a_final_message_is_continued_without_a_new_opener() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well"}]
    prompt = prompt_of(messages=messages, continue_final_message=True)
    assert prompt.continue_final_message
    assert not prompt.add_generation_prompt


def test_a_template_from_the_request_needs_permission() -> None:
    error = refusal(chat_template="{{ messages }}")
    assert (error.code, error.where) == ("unsupported_parameter", "chat_template")
    reading = read(ReaderOptions(template_from_request=True), chat_template="{{ messages }}")
    (prompt,) = reading.request.prompts
    assert isinstance(prompt, ChatPrompt)
    assert prompt.template == "{{ messages }}"


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - {"model", "messages"}))
def test_null_means_the_same_as_nothing(name: str) -> None:
    assert read(**{name: None}) == read()
