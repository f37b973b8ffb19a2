"""Responses bodies: every parameter, what it becomes, and what is wrong with it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Constraint, Sampling, Thinking, Tool
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.output_parameters import INCLUDABLE, LOGPROBS
from smg_node.dialects.responses.request.reader import PARAMETERS, ResponsesReader
from support.answers.responses import RESPONSE_ID, ask_of, json_values
from support.tools.example_counts import example_count

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
CUSTOM = {"type": "custom", "name": "g", "description": "free"}
FORMAT = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}


def refused(**parameters: Any) -> tuple[str | None, str, int]:
    with pytest.raises(SmgError) as caught:
        ask_of(**parameters)
    return caught.value.where, caught.value.code, caught.value.status


def test_the_shortest_body_has_the_defaults() -> None:
    ask = ask_of()
    assert (ask.model, ask.store, ask.background, ask.stream) == ("m", True, False, False)
    assert (ask.truncation, ask.reasoning_context) == ("disabled", "current_turn")
    assert (ask.previous_response_id, ask.conversation_id, ask.instructions) == ("", "", None)
    assert (ask.include, ask.metadata, ask.tools, ask.ignored) == ((), {}, (), ())
    assert ask.sampling == Sampling()
    assert [item.values()["content"] for item in ask.items] == [
        [{"type": "input_text", "text": "hi"}]
    ]


def test_null_is_the_same_as_absent() -> None:
    nothing = dict.fromkeys(PARAMETERS.keys() - {"input", "model"})
    assert ask_of(**nothing) == ask_of()


def test_what_an_ask_holds_comes_from_the_body() -> None:
    ask = ask_of(
        instructions="Be brief.",
        previous_response_id=RESPONSE_ID,
        store=False,
        stream=True,
        truncation="auto",
        include=["reasoning.encrypted_content", "reasoning.encrypted_content"],
        metadata={"a": "b"},
        safety_identifier="someone",
        prompt_cache_key="key",
        reasoning={"effort": "none", "summary": "auto", "context": "all_turns"},
        text={"verbosity": "low"},
        max_tool_calls=3,
        user="me",
        service_tier="flex",
    )
    assert ask.instructions == "Be brief."
    assert ask.previous_response_id == RESPONSE_ID
    assert (ask.store, ask.stream, ask.truncation) == (False, True, "auto")
    assert ask.include == ("reasoning.encrypted_content",)
    assert ask.wants_encrypted
    assert ask.metadata == {"a": "b"}
    assert (ask.safety_identifier, ask.routing_key) == ("someone", "key")
    assert ask.reasoning_context == "all_turns"
    assert ask.thinking == Thinking("none", where="reasoning.effort")
    assert ask.kwargs == {"verbosity": "low"}
    assert ask.ignored == ("reasoning.summary", "service_tier")
    assert not ask_of().wants_encrypted


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_a_conversation_is_named_by_id_or_object(conversation: Any) -> None:
    assert ask_of(conversation=conversation, input=[]).conversation_id == "conv_1"


def test_sampling_is_that_of_chat() -> None:
    ask = ask_of(
        max_output_tokens=2**40,
        temperature=0,
        top_p=0.5,
        presence_penalty=1,
        frequency_penalty=-1,
        top_logprobs=3,
        include=[LOGPROBS],
        stop="x",
        seed=5,
        top_k=7,
        min_tokens=2,
        n=1,
    )
    assert ask.sampling == Sampling(
        max_tokens=2**31 - 1,
        min_tokens=2,
        temperature=0.0,
        top_p=0.5,
        top_k=7,
        presence_penalty=1.0,
        frequency_penalty=-1.0,
        seed=5,
        stop=("x",),
        logprobs=3,
        where={"max_tokens": "max_output_tokens", "logprobs": "top_logprobs"},
    )
    assert ask_of(include=[LOGPROBS]).sampling.logprobs == 0


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ({}, None),
        ({"format": {"type": "text"}}, None),
        (
            {"format": {"type": "json_object"}},
            Constraint("json_object", "", "text.format", strict=False),
        ),
        (
            {"format": FORMAT},
            Constraint("json_schema", '{"type":"object"}', "text.format.schema"),
        ),
        (
            {"format": {**FORMAT, "strict": False}},
            Constraint("json_schema", '{"type":"object"}', "text.format.schema", strict=False),
        ),
    ],
)
def test_the_form_of_the_text_is_a_constraint(text: Any, constraint: Constraint | None) -> None:
    assert ask_of(text=text).sampling.constraint == constraint


def test_tools_are_functions_and_custom_ones_take_one_string() -> None:
    ask = ask_of(tools=[FUNCTION, CUSTOM], tool_choice="none")
    function, custom = ask.tools
    assert function == Tool("f", None, {"type": "object"})
    assert (custom.name, custom.description) == ("g", "free")
    assert custom.parameters is not None
    assert custom.parameters["required"] == ["input"]
    assert ask.custom_tools == ("g",)
    assert ask.choice.mode == "none"
    assert ask_of(tool_choice="auto").choice.mode == "auto"


def test_references_are_named_in_order() -> None:
    rows = [{"id": "msg_2"}, {"role": "user", "content": "x"}, {"id": "msg_1"}]
    ask = ask_of(input=rows)
    assert ask.references == ("msg_2", "msg_1")
    assert [item.type for item in ask.items] == ["item_reference", "message", "item_reference"]


def test_an_unknown_parameter_is_ignored_and_named_or_refused() -> None:
    assert ask_of(telepathy=1).ignored == ("telepathy",)
    assert ask_of(return_token_ids=True).ignored == ("return_token_ids",)
    with pytest.raises(SmgError) as caught:
        ask_of(ReaderOptions(unknown_parameters="reject"), stor=True)
    assert (caught.value.where, caught.value.code) == ("stor", "unknown_parameter")


def test_hints_without_effect_are_named() -> None:
    ask = ask_of(
        prompt_cache_retention="24h",
        prompt_cache_options={"mode": "implicit"},
        context_management=[{"type": "compaction"}],
        reasoning={"mode": "pro"},
        stream=True,
        stream_options={"include_obfuscation": True},
    )
    assert ask.ignored == (
        "prompt_cache_retention",
        "prompt_cache_options",
        "context_management",
        "reasoning.mode",
        "stream_options.include_obfuscation",
    )


@pytest.mark.parametrize(
    ("parameters", "where", "code"),
    [
        ({"model": None}, "model", "missing_required_parameter"),
        ({"model": ""}, "model", "invalid_value"),
        ({"input": None}, "input", "missing_required_parameter"),
        ({"input": ""}, "input", "missing_required_parameter"),
        ({"input": []}, "input", "missing_required_parameter"),
        ({"input": 5}, "input", "invalid_type"),
        ({"input": [{"type": "x"}]}, "input[0].type", "unsupported_item_type"),
        ({"instructions": ["x"]}, "instructions", "invalid_type"),
        (
            {"previous_response_id": "resp_1", "conversation": "conv_1"},
            "conversation",
            "invalid_value",
        ),
        (
            {"previous_response_id": "a b"},
            "previous_response_id",
            "previous_response_not_found",
        ),
        ({"conversation": {}}, "conversation.id", "missing_required_parameter"),
        ({"conversation": 5}, "conversation", "invalid_type"),
        ({"store": "yes"}, "store", "invalid_type"),
        ({"background": True, "store": False}, "background", "invalid_value"),
        ({"include": "x"}, "include", "invalid_type"),
        ({"include": [INCLUDABLE[0], "x"]}, "include[1]", "invalid_value"),
        ({"truncation": "some"}, "truncation", "invalid_value"),
        ({"metadata": {"k" * 65: "v"}}, f"metadata['{'k' * 63}…']", "invalid_value"),
        ({"metadata": {"k": "v" * 513}}, "metadata.k", "invalid_value"),
        ({"metadata": {"k": 5}}, "metadata.k", "invalid_type"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata", "invalid_value"),
        ({"safety_identifier": "a\0b"}, "safety_identifier", "invalid_value"),
        ({"safety_identifier": "a" * 129}, "safety_identifier", "invalid_value"),
        ({"max_output_tokens": 0}, "max_output_tokens", "invalid_value"),
        ({"max_tool_calls": 0}, "max_tool_calls", "invalid_value"),
        ({"temperature": 3}, "temperature", "invalid_value"),
        ({"top_logprobs": 21}, "top_logprobs", "invalid_value"),
        ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
        ({"include": [5], "top_logprobs": 2}, "include[0]", "invalid_type"),
        ({"n": 2}, "n", "unsupported_parameter"),
        ({"prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
        ({"moderation": {"model": "x"}}, "moderation", "unsupported_parameter"),
        ({"text": "json"}, "text", "invalid_type"),
        ({"text": {"format": {}}}, "text.format.type", "missing_required_parameter"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type", "invalid_value"),
        (
            {"text": {"format": {"type": "json_schema", "name": "n"}}},
            "text.format.schema",
            "missing_required_parameter",
        ),
        (
            {"text": {"format": {**FORMAT, "schema": {"type": "thing"}}}},
            "text.format.schema.type",
            "invalid_json_schema",
        ),
        ({"text": {"verbosity": "chatty"}}, "text.verbosity", "invalid_value"),
        ({"reasoning": "high"}, "reasoning", "invalid_type"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort", "invalid_value"),
        ({"reasoning": {"effort": 5}}, "reasoning.effort", "invalid_type"),
        ({"reasoning": {"summary": "long"}}, "reasoning.summary", "invalid_value"),
        ({"reasoning": {"context": "none"}}, "reasoning.context", "invalid_value"),
        ({"tools": [{"name": "f"}]}, "tools[0].type", "missing_required_parameter"),
        ({"tools": [{**FUNCTION, "name": "a b"}]}, "tools[0].name", "invalid_value"),
        ({"tools": [FUNCTION, FUNCTION]}, "tools[1].name", "invalid_value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        (
            {"tool_choice": {"type": "function"}},
            "tool_choice.name",
            "missing_required_parameter",
        ),
        ({"tool_choice": "perhaps"}, "tool_choice", "invalid_value"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls", "invalid_type"),
        ({"stream_options": {}}, "stream_options", "invalid_value"),
        ({"bootstrap_room": 1}, "bootstrap_room", "unsupported_parameter"),
        (
            {"text": {"format": FORMAT}, "regex": "x"},
            "regex",
            "invalid_value",
        ),
    ],
)
def test_what_is_wrong_is_named(parameters: Any, where: str, code: str) -> None:
    assert refused(**parameters) == (where, code, 400)


@pytest.mark.parametrize("spelled", ["a b", "-x", "c" * 65])
def test_a_conversation_that_can_be_none_is_not_found(spelled: str) -> None:
    assert refused(conversation=spelled) == ("conversation", "conversation_not_found", 404)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SmgError) as caught:
        ask_of(model=None, temperature=9, input=[{"type": "x"}], store=1)
    assert "4 problems" in caught.value.message


@settings(max_examples=example_count(100), deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(PARAMETERS)), json_values, max_size=5))
def test_any_body_is_an_ask_or_a_refusal(body: dict[str, Any]) -> None:
    try:
        ask = ResponsesReader(ReaderOptions()).read({"model": "m", "input": "x", **body})
    except SmgError as error:
        # pytest.raises cannot say "or nothing"; whatever is raised must be the caller's fault.
        status = error.status
    else:
        status = 400
        assert generate_request(ask, ask.items).model == ask.model
    assert status in (400, 404)
