"""Writer of a vendor's Messages: bodies that the API takes, nothing lost silently, clear refusals."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    Sampling,
    TextPrompt,
    Thinking,
    Tool,
    ToolChoice,
    Turn,
)
from smg_node.dialects.messages.provider.dialect import PROVIDER
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.messages_wishes import wishes
from support.providers.strict_messages import refusal
from support.providers.written_messages import (
    OPTIONS,
    USER,
    asked,
    calls,
    messages,
    refused,
    text,
    written,
)


def test_a_plain_request_is_nothing_but_its_words() -> None:
    assert written(asked(USER))[0] == {
        "model": "claude-x",
        "max_tokens": 8_000,
        "messages": [{"role": "user", "content": [text("Hi")]}],
        "stream": True,
    }


# ── Tools ────────────────────────────────────────────────────────────────────

TOOL = Tool("f", "Looks.", {"properties": {"a": {"type": "string"}}}, strict=True)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (ToolChoice(), {"type": "auto"}),
        (ToolChoice("required"), {"type": "any"}),
        (ToolChoice("named", "f"), {"type": "tool", "name": "f"}),
        (ToolChoice("none"), {"type": "none"}),
        (ToolChoice(parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("none", parallel=False), {"type": "none"}),
    ],
)
def test_tools_and_the_choice_among_them(choice: ToolChoice, said: dict[str, Any]) -> None:
    fields, _ = written(asked(tools=(TOOL, Tool("g")), choice=choice))
    assert fields["tools"] == [
        {
            "name": "f",
            "description": "Looks.",
            "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
            "strict": True,
        },
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert fields["tool_choice"] == said


def test_only_allowed_tools_are_offered() -> None:
    choice = ToolChoice("required", allowed=("g",))
    fields, _ = written(asked(tools=(TOOL, Tool("g")), choice=choice))
    assert [tool["name"] for tool in fields["tools"]] == ["g"]


def test_a_history_with_calls_has_tools_even_if_none_is_offered() -> None:
    fields, _ = written(asked(USER, calls(("a", "f")), Turn("tool", "1", answers_call="a")))
    assert fields["tools"] == [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
    assert fields["tool_choice"] == {"type": "none"}


# ── How it is drawn ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sampling", "fields", "ignored"),
    [
        (Sampling(temperature=0.5), {"temperature": 0.5}, ()),
        (Sampling(temperature=1.5), {"temperature": 1.0}, ("temperature",)),
        (Sampling(temperature=1.0, top_p=1.0), {}, ()),
        (Sampling(temperature=0.5, top_p=0.5), {"temperature": 0.5}, ("top_p",)),
        (Sampling(top_p=0.5, top_k=40), {"top_p": 0.5, "top_k": 40}, ()),
        (Sampling(top_k=-1), {}, ()),
        (Sampling(stop=("A", "B")), {"stop_sequences": ["A", "B"]}, ()),
        (Sampling(seed=1, min_p=0.1, stop_token_ids=(2,)), {}, ("min_p", "seed", "stop_token_ids")),
        (
            Sampling(max_tokens=5, frequency_penalty=1.0, where={"frequency_penalty": "penalty"}),
            {"max_tokens": 5},
            ("penalty",),
        ),
    ],
)
def test_sampling(sampling: Sampling, fields: dict[str, Any], ignored: tuple[str, ...]) -> None:
    usual = written(asked())[0]
    assert written(asked(sampling=sampling)) == ({**usual, **fields}, ignored)


def test_who_thinks_is_not_told_how_to_draw() -> None:
    sampling = Sampling(temperature=0.5, top_k=3)
    fields, ignored = written(asked(sampling=sampling, thinking=Thinking("low")))
    assert not {"temperature", "top_k"} & set(fields)
    assert ignored == ("temperature", "top_k")


def test_a_schema_is_the_form_of_the_answer_and_its_objects_are_closed() -> None:
    schema = '{"type":"object","properties":{"a":{"type":"object","properties":{},"additionalProperties":true}}}'
    constraint = Constraint("json_schema", schema, "response_format")
    fields, _ = written(asked(sampling=Sampling(constraint=constraint)))
    assert fields["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "a": {"type": "object", "properties": {}, "additionalProperties": True}
                },
                "additionalProperties": False,
            },
        }
    }


def test_any_object_of_json_is_a_wish_only_where_it_may_be_one() -> None:
    wish = Constraint("json_object", "", "response_format", strict=False)
    assert written(asked(sampling=Sampling(constraint=wish)))[1] == ("response_format",)
    must = Constraint("json_object", "", "response_format")
    assert refused(asked(sampling=Sampling(constraint=must))) == "response_format"


@pytest.mark.parametrize(
    ("request_", "where"),
    [
        (asked(sampling=Sampling(n=2)), "n"),
        (asked(sampling=Sampling(logprobs=0)), "logprobs"),
        (asked(sampling=Sampling(adapter="a")), "adapter"),
        (asked(sampling=Sampling(stop=("\n",), where={"stop": "stop_sequences"})), "stop_sequences"),
        (asked(sampling=Sampling(constraint=Constraint("regex", "a", "regex"))), "regex"),
        (asked(USER, Turn("assistant", "So")), "messages"),
        (asked(template="x"), "chat_template"),
        (asked(documents=({"a": "b"},)), "documents"),
        (GenerateRequest("m", (TextPrompt("x"),), Sampling(), True), "prompt"),
    ],
)  # fmt: skip
def test_what_would_be_another_answer_is_refused(request_: GenerateRequest, where: str) -> None:
    assert refused(request_) == where


def test_an_answer_goes_on_from_given_text_without_blanks_at_its_end() -> None:
    found = messages(USER, Turn("assistant", "So \n"), continue_final_message=True)
    assert found[1]["content"] == [text("So")]


def test_what_a_model_was_found_to_refuse_is_left_out_and_told() -> None:
    lacks = frozenset({"temperature", "thinking", "output_config.effort", "top_k"})
    options = WriterOptions("m", "anthropic", lacks=lacks)
    sampling = Sampling(temperature=0.5, where={"temperature": "generationConfig.temperature"})
    assert written(asked(sampling=sampling), options)[1] == ("generationConfig.temperature",)
    fields, ignored = written(asked(thinking=Thinking("low")), options)
    assert ignored == ("output_config.effort", "thinking")
    assert not {"thinking", "output_config"} & set(fields)
    stops = WriterOptions("m", "anthropic", lacks=frozenset({"stop_sequences"}))
    assert refused(asked(sampling=Sampling(stop=("A",))), stops) == "stop_sequences"


# ── Any request ──────────────────────────────────────────────────────────────


@settings(max_examples=150, deadline=None)
@given(
    wishes(),
    st.sets(st.sampled_from(("systems_first", "thinking_by_budget", "thinking_adaptive_only"))),
)
def test_any_body_is_one_that_the_api_takes(request_: GenerateRequest, quirks: set[str]) -> None:
    options = WriterOptions("m", "anthropic", quirks=frozenset(quirks))
    found = PROVIDER.write(request_, options).fields
    assert refusal(found) == ""


@settings(max_examples=60, deadline=None)
@given(wishes())
def test_every_word_and_signature_of_its_issuer_is_in_the_body(request_: GenerateRequest) -> None:
    body = PROVIDER.write(request_, OPTIONS).fields
    told = repr((body.get("system"), body["messages"]))
    [prompt] = request_.prompts
    assert isinstance(prompt, ChatPrompt)
    for turn in prompt.turns:
        if isinstance(turn.content, str):
            assert repr(turn.content.strip())[1:-1] in told
