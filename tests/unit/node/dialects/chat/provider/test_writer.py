"""Writer of chat bodies for vendors: valid for the official client's types made strict; quirks; what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import (
    Constraint,
    GenerateRequest,
    MediaPart,
    Sampling,
    TextPart,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    TurnBlock,
)
from smg_node.dialects.chat.provider.dialect import ChatProvider
from smg_node.dialects.provider_dialect import WriterOptions, Written
from support.providers.openai_wishes import FILE, SOUND, wish, wishes
from support.providers.strict_openai import refusal

API = ChatProvider()
ASKED = Turn("user", "Hi")
SIGNED = Opaque("google", SIGNATURE, "c2ln")
DETAIL = Opaque("openrouter", "detail", '{"type":"reasoning.encrypted","data":"x","index":0}')
CLOSED = {"type": "object", "properties": {}, "additionalProperties": False}
stops = st.lists(st.text(min_size=1, max_size=3), max_size=3).map(tuple)


def written(request: GenerateRequest, *quirks: str, model: str = "gpt-x", **more: Any) -> Written:
    options = {"issuer": "openai", **more}
    return API.write(request, WriterOptions(model, quirks=frozenset(quirks), **options))


@settings(max_examples=60, deadline=None)
@given(wishes(sounds=True, stop=stops))
def test_any_body_is_one_that_the_vendor_takes(request: GenerateRequest) -> None:
    body = written(request).fields
    assert refusal("chat", body) == ""
    assert json.loads(json.dumps(body)) == body


def test_a_body_says_what_was_asked_for_and_nothing_of_engines() -> None:
    sampling = Sampling(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        min_p=0.1,
        seed=3,
        stop=("x",),
        logprobs=2,
        presence_penalty=0.5,
        logit_bias={1: 2.0},
    )
    told = written(wish(Turn("developer", "Be"), ASKED, sampling=sampling, kwargs={"a": 1}))
    assert told.fields == {
        "model": "gpt-x",
        "messages": [{"role": "developer", "content": "Be"}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "presence_penalty": 0.5,
        "seed": 3,
        "stop": ["x"],
        "logit_bias": {"1": 2.0},
        "logprobs": True,
        "top_logprobs": 2,
    }
    assert told.ignored == ("min_p", "chat_template_kwargs", "top_k")


def test_a_vendor_has_its_own_names() -> None:
    sampling = Sampling(max_tokens=9, seed=3)
    request = wish(
        Turn("developer", "Be"),
        ASKED,
        sampling=sampling,
        tools=(Tool("f"),),
        choice=ToolChoice("required"),
    )
    quirks = (
        "max_tokens_name", "no_stream_options", "tool_choice_required_any", "seed_random_seed",
        "system_role",
    )  # fmt: skip
    body = written(request, *quirks).fields
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert {name: body[name] for name in body.keys() - {"model", "messages", "tools"}} == {
        "stream": True,
        "max_tokens": 9,
        "random_seed": 3,
        "tool_choice": "any",
    }


STEP = Turn(
    "assistant",
    "Wait",
    reasoning="Why",
    calls=(ToolCall("c", "f", '{"a":1}'),),
    blocks=(
        TurnBlock("reasoning", "Why", opaque=(DETAIL,)),
        TurnBlock("text", "Wait"),
        TurnBlock("call", '{"a":1}', "f", "c", (SIGNED,)),
    ),
)
RESULT = Turn("tool", "1", answers_call="c")
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
BARE = {"role": "assistant", "content": "Wait", "tool_calls": [CALL]}
PROOF = {"google": {"thought_signature": "c2ln"}}


@pytest.mark.parametrize(
    ("quirks", "issuer", "expected"),
    [
        ((), "openai", BARE),
        (("reasoning_content",), "x", {**BARE, "reasoning_content": "Why"}),
        (
            ("reasoning_details",),
            "openrouter",
            {
                **BARE,
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 0}],
            },
        ),
        ((), "google", {**BARE, "tool_calls": [{**CALL, "extra_content": PROOF}]}),
        (("thought_signatures",), "x", {**BARE, "tool_calls": [{**CALL, "extra_content": PROOF}]}),
    ],
)
def test_state_and_thoughts_go_back_to_who_wants_them(
    quirks: tuple[str, ...], issuer: str, expected: Any
) -> None:
    body = written(wish(ASKED, STEP, RESULT), *quirks, issuer=issuer).fields
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    assert body["messages"][1:] == [expected, result]


@pytest.mark.parametrize(
    ("detail", "told"), [("low", {"detail": "low"}), ("original", {"detail": "original"}), ("", {})]
)
def test_a_picture_takes_its_detail_along(detail: Any, told: dict[str, str]) -> None:
    turn = Turn("user", (MediaPart("image", "u", "x", detail),))
    (message,) = written(wish(turn)).fields["messages"]
    assert message["content"] == [{"type": "image_url", "image_url": {"url": "u", **told}}]


def test_what_a_result_shows_stands_behind_all_results() -> None:
    image = MediaPart("image", "https://e.com/a.png", "x")
    calls = (ToolCall("c", "f", "{}"), ToolCall("d", "f", "{}"))
    turns = (
        Turn("assistant", None, calls=calls),
        Turn("tool", (TextPart("see"), image), answers_call="c"),
        Turn("tool", "2", answers_call="d"),
        ASKED,
    )
    assert written(wish(*turns)).fields["messages"][1:] == [
        {"role": "tool", "tool_call_id": "c", "content": "see"},
        {"role": "tool", "tool_call_id": "d", "content": "2"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What the result of c shows:"},
                {"type": "image_url", "image_url": {"url": "https://e.com/a.png"}},
            ],
        },
        {"role": "user", "content": "Hi"},
    ]


def test_media_stand_where_the_api_has_them() -> None:
    shown = (
        TextPart("See"),
        TextPart(""),
        MediaPart("audio", SOUND, "x"),
        MediaPart("file", FILE, "x"),
    )
    [message] = written(wish(Turn("user", shown, name="Ann"))).fields["messages"]
    assert message == {
        "role": "user",
        "name": "Ann",
        "content": [
            {"type": "text", "text": "See"},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            {"type": "file", "file": {"file_data": FILE, "filename": "file.pdf"}},
        ],
    }


def test_only_tools_that_may_be_called_are_told() -> None:
    tools = (Tool("f", "does", CLOSED, strict=True), Tool("g", None, {"a": 1}, strict=True))
    choice = ToolChoice("auto", allowed=("f",), parallel=False)
    body = written(wish(ASKED, tools=tools, choice=choice)).fields
    function = {"name": "f", "parameters": CLOSED, "description": "does", "strict": True}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("auto", False)
    told = written(wish(ASKED, tools=tools, choice=ToolChoice("named", "g")))
    assert told.fields["tool_choice"] == {"type": "function", "function": {"name": "g"}}
    assert told.ignored == ("tools.strict",)


def test_the_form_of_an_answer() -> None:
    schema = {"type": "object"}
    constraint = Constraint("json_schema", json.dumps(schema), "response_format", strict=False)
    body = written(wish(ASKED, sampling=Sampling(constraint=constraint))).fields
    named = {"name": "answer", "schema": schema, "strict": False}
    assert body["response_format"] == {"type": "json_schema", "json_schema": named}
    constraint = Constraint("json_object", "", "response_format")
    body = written(wish(ASKED, sampling=Sampling(constraint=constraint))).fields
    assert body["response_format"] == {"type": "json_object"}


def test_effort_stands_at_the_top_for_models_that_think() -> None:
    request = wish(ASKED, thinking=Thinking(effort="high"))
    assert written(request).fields["reasoning_effort"] == "high"
    told = written(request, model="gpt-4o")
    assert ("reasoning_effort" in told.fields, told.ignored) == (False, ("reasoning_effort",))


def test_a_length_that_a_model_refuses_under_one_name_is_said_under_the_other() -> None:
    request = wish(ASKED, sampling=Sampling(max_tokens=9))
    assert written(request, lacks=frozenset({"max_completion_tokens"})).fields["max_tokens"] == 9
    told = written(request, lacks=frozenset({"max_completion_tokens", "max_tokens"}))
    assert told.ignored == ("max_tokens",)
    assert not told.fields.keys() & {"max_completion_tokens", "max_tokens"}


def test_what_the_model_refuses_is_left_out_if_the_answer_stays_one() -> None:
    request = wish(ASKED, sampling=Sampling(temperature=1.5, stop=("x",)))
    told = written(request, lacks=frozenset({"temperature", "stream_options"}))
    assert told.fields.keys() == {"model", "messages", "stream", "stop"}
    assert told.ignored == ("temperature",)
    with pytest.raises(SmgError, match="the model does not take stop"):
        written(request, lacks=frozenset({"stop"}))


@pytest.mark.parametrize(
    ("request_", "where"),
    [
        (wish(ASKED, sampling=Sampling(n=2)), "n"),
        (wish(ASKED, sampling=Sampling(constraint=Constraint("ebnf", "a", "ebnf"))), "ebnf"),
        (wish(Turn("user", (MediaPart("video", FILE, "m"),))), "m"),
        (wish(Turn("user", (MediaPart("audio", "https://e.com/a.wav", "m"),))), "m"),
        (wish(Turn("user", (MediaPart("audio", "data:audio/flac;base64,eA==", "m"),))), "m"),
        (wish(Turn("user", (MediaPart("file", "https://e.com/a.pdf", "m"),))), "m"),
        (wish(Turn("system", (MediaPart("image", FILE, "m"),)), ASKED), "m"),
    ],
)
def test_what_would_be_another_answer_is_refused(request_: GenerateRequest, where: str) -> None:
    with pytest.raises(SmgError) as raised:
        written(request_)
    assert raised.value.where == where
