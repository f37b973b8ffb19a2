"""Every parameter of Chat Completions: what it refuses, where it says so, and what is only ignored."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from support.answers.chat_bodies import BASE, refusal, request_of

TOOL = {"type": "function", "function": {"name": "look_up"}}

# ── What parameters refuse ───────────────────────────────────────────────────

WRONG_VALUES: list[tuple[str, Any, str | None]] = [
    ("model", "", "model"),
    ("model", "x" * 257, "model"),
    ("max_tokens", 0, "max_tokens"),
    ("max_completion_tokens", -1, "max_completion_tokens"),
    ("temperature", -0.1, "temperature"),
    ("temperature", 2.01, "temperature"),
    ("temperature", float("nan"), "temperature"),
    ("temperature", float("inf"), "temperature"),
    ("temperature", 10**400, "temperature"),
    ("top_p", 0, "top_p"),
    ("top_p", 1.1, "top_p"),
    ("top_k", -2, "top_k"),
    ("min_p", 1.1, "min_p"),
    ("frequency_penalty", -2.1, "frequency_penalty"),
    ("presence_penalty", 2.1, "presence_penalty"),
    ("repetition_penalty", 0, "repetition_penalty"),
    ("repetition_penalty", 2.1, "repetition_penalty"),
    ("n", 0, "n"),
    ("n", 17, "n"),
    ("seed", 2**63, "seed"),
    ("stop", "", "stop"),
    ("stop", ["a", ""], "stop[1]"),
    ("stop", ["a"] * 17, "stop"),
    ("stop", "é" * 129, "stop"),
    ("stop_token_ids", [0, -1], "stop_token_ids[1]"),
    ("stop_token_ids", [2**32], "stop_token_ids[0]"),
    ("min_tokens", -1, "min_tokens"),
    ("logit_bias", {"-1": 1}, "logit_bias.-1"),
    ("logit_bias", {"x": 1}, "logit_bias.x"),
    ("logit_bias", {"4294967296": 1}, "logit_bias.4294967296"),
    ("logit_bias", {"1": 101}, "logit_bias.1"),
    ("logit_bias", {str(i): 0 for i in range(1025)}, "logit_bias"),
    ("top_logprobs", 21, "top_logprobs"),
    ("top_logprobs", 1, "top_logprobs"),
    ("prompt_logprobs", 21, "prompt_logprobs"),
    ("stream_options", {"include_usage": True}, "stream_options"),
    ("metadata", {str(i): "" for i in range(17)}, "metadata"),
    ("metadata", {"k" * 65: ""}, f"metadata['{'k' * 63}…']"),
    ("metadata", {"a": "x" * 513}, "metadata.a"),
    ("user", "x" * 129, "user"),
    ("safety_identifier", "x" * 129, "safety_identifier"),
    ("prompt_cache_key", "x" * 257, "prompt_cache_key"),
    ("service_tier", "gold", "service_tier"),
    ("reasoning_effort", "extreme", "reasoning_effort"),
    ("verbosity", "loud", "verbosity"),
    ("thinking", {"type": "maybe"}, "thinking.type"),
    ("thinking", {"type": "enabled", "budget_tokens": 1023}, "thinking.budget_tokens"),
    ("truncate_prompt_tokens", 0, "truncate_prompt_tokens"),
    ("truncate_prompt_tokens", -2, "truncate_prompt_tokens"),
    ("chat_template_kwargs", {"messages": []}, "chat_template_kwargs.messages"),
    ("chat_template_kwargs", {str(i): i for i in range(65)}, "chat_template_kwargs"),
    ("continue_final_message", True, "continue_final_message"),
    ("messages", [], "messages"),
    ("tool_choice", "auto", "tool_choice"),
    ("tool_choice", "sometimes", "tool_choice"),
    ("modalities", [], "modalities"),
    ("priority", 2**31, "priority"),
    ("response_format", {"type": "xml"}, "response_format.type"),
    ("regex", "", "regex"),
    ("choice", [], "choice"),
    ("lora_path", "", "lora_path"),
]


@pytest.mark.parametrize(("name", "value", "where"), WRONG_VALUES)
def test_a_value_out_of_range_is_refused_at_its_path(name: str, value: Any, where: str) -> None:
    error = refusal(**{name: value})
    assert error.where == where
    assert error.code == "invalid_value"
    assert where in error.message


WRONG_TYPES: list[tuple[str, Any, str]] = [
    ("model", 1, "model"),
    ("messages", "hi", "messages"),
    ("max_tokens", "1", "max_tokens"),
    ("max_tokens", 5.5, "max_tokens"),
    ("max_tokens", True, "max_tokens"),
    ("temperature", "0", "temperature"),
    ("temperature", False, "temperature"),
    ("n", 1.5, "n"),
    ("seed", 1.5, "seed"),
    ("stop", 1, "stop"),
    ("stop", ["a", None], "stop[1]"),
    ("stop_token_ids", 1, "stop_token_ids"),
    ("stop_token_ids", [True], "stop_token_ids[0]"),
    ("ignore_eos", 1, "ignore_eos"),
    ("no_stop_trim", "yes", "no_stop_trim"),
    ("logit_bias", [1], "logit_bias"),
    ("logit_bias", {"1": "2"}, "logit_bias.1"),
    ("logit_bias", {"1": None}, "logit_bias.1"),
    ("logprobs", 1, "logprobs"),
    ("top_logprobs", 1.5, "top_logprobs"),
    ("stream", "true", "stream"),
    ("metadata", {"a": 1}, "metadata.a"),
    ("metadata", {"a": None}, "metadata.a"),
    ("user", 1, "user"),
    ("service_tier", 1, "service_tier"),
    ("modalities", "text", "modalities"),
    ("store", "yes", "store"),
    ("prediction", "x", "prediction"),
    ("response_format", "json_object", "response_format"),
    ("choice", ["a", 1], "choice[1]"),
    ("chat_template_kwargs", [], "chat_template_kwargs"),
    ("documents", ["a"], "documents[0]"),
    ("reasoning_effort", True, "reasoning_effort"),
    ("enable_thinking", {"type": "enabled"}, "enable_thinking"),
    ("thinking", "on", "thinking"),
    ("tools", {}, "tools"),
    ("tool_choice", 1, "tool_choice"),
    ("parallel_tool_calls", "no", "parallel_tool_calls"),
    ("priority", 1.5, "priority"),
    ("separate_reasoning", 0, "separate_reasoning"),
]


@pytest.mark.parametrize(("name", "value", "where"), WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_refused_at_its_path(
    name: str, value: Any, where: str
) -> None:
    error = refusal(**{name: value})
    assert (error.where, error.code) == (where, "invalid_type")


@pytest.mark.parametrize("name", ["model", "messages"])
@pytest.mark.parametrize("absent", [True, False])
def test_what_is_required_must_be_there_and_not_null(name: str, absent: bool) -> None:
    body = {**BASE, name: None}
    if absent:
        del body[name]
    with pytest.raises(SmgError) as caught:
        ChatDialect(ReaderOptions()).read(body)
    assert (caught.value.code, caught.value.where) == ("missing_required_parameter", name)


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"max_tokens": 4, "min_tokens": 5}, "min_tokens"),
        ({"no_stop_trim": True, "include_stop_str_in_output": False}, "include_stop_str_in_output"),
        ({"lora_path": "a", "lora_id": "b"}, "lora_id"),
        ({"response_format": {"type": "json_object"}, "regex": "a"}, "regex"),
        ({"ebnf": "a", "structured_outputs": {"choice": ["a"]}}, "structured_outputs.choice"),
        ({"include_reasoning": False, "logprobs": True}, "include_reasoning"),
        ({"include_reasoning": False, "return_token_ids": True}, "include_reasoning"),
        ({"tools": [TOOL], "functions": [{"name": "f"}]}, "functions"),
        (
            {
                "messages": [{"role": "assistant", "content": "x"}],
                "continue_final_message": True,
                "add_generation_prompt": True,
            },
            "continue_final_message",
        ),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    parameters: dict[str, Any], where: str
) -> None:
    assert refusal(**parameters).where == where


def test_synonyms_that_agree_are_taken() -> None:
    sampling = request_of(no_stop_trim=True, include_stop_str_in_output=True).sampling
    assert sampling.keep_stop
    assert request_of(lora_path="a", lora_id="a").sampling.adapter == "a"


# ── What has no effect, and what cannot be honoured ──────────────────────────


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user", "u"),
        ("safety_identifier", "s"),
        ("prompt_cache_options", {}),
        ("prompt_cache_retention", "24h"),
        ("prediction", {"type": "content", "content": "x"}),
        ("web_search_options", {}),
        ("mm_processor_kwargs", {}),
        ("media_io_kwargs", {}),
        ("priority", -1),
        ("rid", "r"),
        ("request_id", "r"),
        ("session_id", "s"),
        ("store", True),
        ("service_tier", "priority"),
        ("guided_decoding_backend", "xgrammar"),
        ("something_new", {"a": 1}),
    ],
)
def test_a_hint_without_effect_is_named(name: str, value: Any) -> None:
    assert request_of(**{name: value}).ignored == (name,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("moderation", {"model": "x"}),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "x"}),
        ("bad_words", ["x"]),
        ("allowed_token_ids", [1]),
        ("logits_processors", ["x"]),
        ("custom_logit_processor", "x"),
        ("use_beam_search", True),
        ("best_of", 2),
        ("length_penalty", 1.1),
        ("thinking_token_budget", 10),
        ("kv_transfer_params", {}),
        ("bootstrap_host", "h"),
        ("bootstrap_room", 1),
        ("bootstrap_of_another_day", 1),
        ("data_parallel_rank", 0),
        ("input_embeds", [[0.1]]),
        ("echo", True),
        ("return_hidden_states", True),
        ("cache_salt", "x"),
        ("extra_key", "x"),
        ("session_params", {"id": "x"}),
    ],
)
def test_what_would_change_the_answer_is_refused_and_never_dropped(name: str, value: Any) -> None:
    for mode in ("forward", "reject"):
        options = ReaderOptions(unknown_parameters="reject" if mode == "reject" else "forward")
        error = refusal(options, **{name: value})
        assert (error.code, error.where) == ("unsupported_parameter", name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("modalities", ["text"]),
        ("bad_words", []),
        ("use_beam_search", False),
        ("best_of", 1),
        ("length_penalty", 1),
        ("length_penalty", 1.0),
        ("echo", False),
        ("return_hidden_states", False),
        ("store", False),
        ("service_tier", "auto"),
    ],
)
def test_a_value_that_asks_for_nothing_is_accepted_in_silence(name: str, value: Any) -> None:
    assert request_of(**{name: value}).ignored == ()


def test_best_of_may_equal_n() -> None:
    assert request_of(n=3, best_of=3).sampling.n == 3


def test_prompt_log_probabilities_cannot_be_streamed() -> None:
    error = refusal(stream=True, prompt_logprobs=1)
    assert (error.code, error.where) == ("unsupported_parameter", "prompt_logprobs")


# ── Unknown keys ─────────────────────────────────────────────────────────────


def test_an_unknown_key_is_refused_with_the_nearest_name_if_so_configured() -> None:
    error = refusal(ReaderOptions(unknown_parameters="reject"), temprature=1)
    assert (error.code, error.where) == ("unknown_parameter", "temprature")
    assert "'temperature'" in error.message


def test_an_unknown_key_inside_an_object_is_named_with_its_path() -> None:
    options = {"include_usage": True, "include_color": True}
    assert request_of(stream=True, stream_options=options).ignored == (
        "stream_options.include_color",
    )
    error = refusal(ReaderOptions(unknown_parameters="reject"), stream=True, stream_options=options)
    assert error.where == "stream_options.include_color"


def test_names_of_ignored_keys_cannot_break_a_header() -> None:
    body = {"x\r\nset-cookie: a": 1, "y" * 500: 1, **{f"key_{i}": 1 for i in range(100)}}
    ignored = request_of(**body).ignored
    assert len(ignored) == 32
    assert all(len(name) <= 64 and name.isascii() and name.isprintable() for name in ignored)
    assert not any(" " in name or ":" in name for name in ignored)


@pytest.mark.parametrize("name", ["custom_params", "prompt_embeds"])
def test_what_other_engines_know_is_not_taken_for_unknown(name: str) -> None:
    assert refusal(**{name: {"a": 1}}).code == "unsupported_parameter"


def test_all_problems_are_told_at_once() -> None:
    error = refusal(temperature=9, top_p=0, n="x", messages=[{"role": "nobody", "content": "x"}])
    assert error.message.startswith("4 problems: ")
    assert error.where == "messages[0].role"
    assert error.code == "invalid_value"
    for path in ("temperature", "top_p", "n", "messages[0].role"):
        assert f"{path}: " in error.message


def test_at_most_ten_problems_are_told() -> None:
    error = refusal(messages=[1] * 8000)
    assert error.message.startswith("10 or more problems")
    assert "messages[9]" in error.message
    assert "messages[10]" not in error.message


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_budget_for_thoughts_leaves_room_for_an_answer(name: str) -> None:
    thinking = {"type": "enabled", "budget_tokens": 2048}
    error = refusal(thinking=thinking, **{name: 2048})
    assert error.where == "thinking.budget_tokens"
    assert "less than the 2048 tokens" in error.message
