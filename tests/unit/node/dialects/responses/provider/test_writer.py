"""Writer of Responses bodies: valid for the official client's types made strict; what is said, ignored, refused."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import ENCRYPTED, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaPart,
    Sampling,
    TextPart,
    TextPrompt,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    TurnBlock,
)
from smg_node.dialects.provider_dialect import WriterOptions, Written
from support.answers.vendor_responses import API
from support.providers.openai_wishes import FILE, PHASE, SOUND, THOUGHT, wish, wishes
from support.providers.strict_openai import refusal

ASKED = Turn("user", "Hi")
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def written(request: GenerateRequest, model: str = "gpt-x", **options: Any) -> Written:
    return API.write(request, WriterOptions(model, "openai", **options))


def fields(*turns: Turn, **more: Any) -> dict[str, Any]:
    return written(wish(*turns, **more)).fields


@settings(max_examples=60, deadline=None)
@given(wishes())
def test_any_body_is_one_that_the_vendor_takes(request: GenerateRequest) -> None:
    body = written(request).fields
    assert refusal("responses", body) == ""
    assert json.loads(json.dumps(body)) == body


def test_a_body_leaves_nothing_at_the_vendor_and_asks_for_thoughts() -> None:
    assert fields(Turn("system", "Be brief"), Turn("developer", "!"), ASKED) == {
        "model": "gpt-x",
        "instructions": "Be brief\n\n!",
        "input": [{"type": "message", "role": "user", "content": "Hi"}],
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
    }


def test_a_later_instruction_stays_at_its_place() -> None:
    roles = [one["role"] for one in fields(ASKED, Turn("system", "now"), ASKED)["input"]]
    assert roles == ["user", "system", "user"]


def test_an_instruction_alone_is_what_the_user_says() -> None:
    body = fields(Turn("system", "Go"))
    assert body["input"] == [{"type": "message", "role": "user", "content": "Go"}]
    assert "instructions" not in body


STEP = Turn(
    "assistant",
    None,
    calls=(ToolCall("c", "f", '{"a":1}'),),
    blocks=(
        TurnBlock("reasoning", "Why", opaque=(THOUGHT,)),
        TurnBlock("text", "Wait", opaque=(PHASE,)),
        TurnBlock("reasoning", "mine", opaque=(Opaque("xai", ENCRYPTED, "eA=="),)),
        TurnBlock("call", '{"a":1}', "f", "c"),
        TurnBlock("reasoning", "", opaque=(THOUGHT,)),
    ),
)


def test_a_step_goes_back_in_its_order_with_its_own_vendors_state() -> None:
    assert fields(ASKED, STEP, Turn("tool", "1", answers_call="c"))["input"][1:] == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Why"}],
            "encrypted_content": "ZW5j",
        },
        {"type": "message", "role": "assistant", "content": "Wait", "phase": "commentary"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]


def test_thoughts_of_others_are_left_out() -> None:
    found = API.write(wish(ASKED, STEP), WriterOptions("grok-4", "xai")).fields["input"]
    assert [one.get("encrypted_content") for one in found if one["type"] == "reasoning"] == ["eA=="]


def test_a_picture_takes_its_detail_along() -> None:
    (message, *_) = fields(Turn("user", (MediaPart("image", "u", "x", "low"),)))["input"]
    assert message["content"] == [{"type": "input_image", "detail": "low", "image_url": "u"}]


def test_media_stand_where_the_api_has_them() -> None:
    shown = (
        TextPart("See"),
        MediaPart("image", "https://e.com/a.png", "x"),
        MediaPart("file", FILE, "x"),
        MediaPart("file", "https://e.com/a.pdf", "x"),
    )
    parts = [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "detail": "auto", "image_url": "https://e.com/a.png"},
        {"type": "input_file", "filename": "file.pdf", "file_data": FILE},
        {"type": "input_file", "file_url": "https://e.com/a.pdf"},
    ]
    body = fields(Turn("user", shown), STEP, Turn("tool", shown, answers_call="c"))
    assert body["input"][0]["content"] == parts
    assert body["input"][-1]["output"] == parts


def test_tools_and_their_choice() -> None:
    tools = (
        Tool("f", "does", CLOSED, strict=True),
        Tool("g", None, {"type": "object"}, strict=True, where="tools[1]"),
        Tool("h"),
    )
    choice = ToolChoice("required", allowed=("f",), parallel=False)
    told = written(wish(ASKED, tools=tools, choice=choice))
    nothing = {"type": "object", "properties": {}}
    assert told.fields["tools"] == [
        {
            "type": "function",
            "name": "f",
            "parameters": CLOSED,
            "strict": True,
            "description": "does",
        },
        {"type": "function", "name": "g", "parameters": {"type": "object"}, "strict": False},
        {"type": "function", "name": "h", "parameters": nothing, "strict": False},
    ]
    assert told.fields["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "f"}],
    }
    assert told.fields["parallel_tool_calls"] is False
    assert told.ignored == ("tools[1].strict",)


@pytest.mark.parametrize(
    ("thinking", "model", "quirks", "expected", "ignored"),
    [
        (Thinking(), "gpt-x", (), None, ()),
        (Thinking(effort="xhigh"), "gpt-x", (), {"effort": "xhigh"}, ()),
        (Thinking(on=True), "gpt-x", (), {"summary": "auto"}, ()),
        (Thinking(on=True), "gpt-x", ("no_summaries",), None, ()),
        (Thinking(budget=2_048), "gpt-x", (), {"effort": "low", "summary": "auto"}, ()),
        (Thinking(budget=9_000), "gpt-x", (), {"effort": "medium", "summary": "auto"}, ()),
        (Thinking(budget=50_000), "gpt-x", (), {"effort": "high", "summary": "auto"}, ()),
        (Thinking(budget=0), "gpt-x", (), {"effort": "none"}, ()),
        (Thinking(on=False), "gpt-x", (), {"effort": "none"}, ()),
        (Thinking(on=False), "gpt-x", ("no_effort_none",), {"effort": "minimal"}, ()),
        (Thinking(effort="high"), "gpt-4.1", (), None, ("reasoning_effort",)),
        (Thinking(on=False), "gpt-4.1", (), None, ()),
        (Thinking(effort="high"), "x", ("no_thinking",), None, ("reasoning_effort",)),
        (Thinking(number=0.4), "gpt-x", (), None, ("reasoning_effort",)),
    ],
)
def test_how_much_is_thought(
    thinking: Thinking, model: str, quirks: tuple[str, ...], expected: Any, ignored: tuple[str, ...]
) -> None:
    told = written(wish(ASKED, thinking=thinking), model, quirks=frozenset(quirks))
    assert (told.fields.get("reasoning"), told.ignored) == (expected, ignored)


def test_a_model_that_never_thinks_is_not_asked_for_thoughts() -> None:
    assert "include" not in written(wish(ASKED), "gpt-4o-mini").fields
    quirks = frozenset({"no_encrypted_reasoning"})
    assert "include" not in written(wish(ASKED), quirks=quirks).fields


def test_how_it_is_drawn() -> None:
    sampling = Sampling(
        max_tokens=5,
        temperature=0.5,
        top_p=0.9,
        logprobs=3,
        top_k=4,
        seed=1,
        frequency_penalty=1.0,
        logit_bias={1: 2.0},
        where={"max_tokens": "max_completion_tokens"},
    )
    told = written(wish(ASKED, sampling=sampling))
    assert {name: told.fields[name] for name in told.fields.keys() - {"model", "input"}} == {
        "store": False,
        "stream": True,
        "max_output_tokens": 16,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_logprobs": 3,
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    }
    assert set(told.ignored) == {
        "top_k", "seed", "frequency_penalty", "logit_bias", "max_completion_tokens",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "strict", "ignored"),
    [
        (CLOSED, True, ()),
        ({"type": "object", "properties": {"a": {}}}, False, ("response_format.strict",)),
        ({**CLOSED, "properties": {"a": {"type": "object"}}}, False, ("response_format.strict",)),
    ],
)
def test_a_schema_is_strict_where_the_vendor_takes_it_so(
    schema: Any, strict: bool, ignored: tuple[str, ...]
) -> None:
    constraint = Constraint("json_schema", json.dumps(schema), "response_format")
    told = written(wish(ASKED, sampling=Sampling(constraint=constraint)))
    form = {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}
    assert (told.fields["text"], told.ignored) == ({"format": form}, ignored)


def test_any_object_of_json_is_a_form() -> None:
    sampling = Sampling(constraint=Constraint("json_object", "", "response_format"))
    assert fields(ASKED, sampling=sampling)["text"] == {"format": {"type": "json_object"}}


def _drawn(**sampling: Any) -> GenerateRequest:
    return wish(ASKED, sampling=Sampling(**sampling))


@pytest.mark.parametrize(
    ("request_", "where"),
    [
        (_drawn(n=2), "n"),
        (_drawn(stop=("x",)), "stop"),
        (_drawn(stop_token_ids=(1,)), "stop_token_ids"),
        (_drawn(prompt_logprobs=0), "prompt_logprobs"),
        (_drawn(adapter="a", where={"adapter": "lora"}), "lora"),
        (_drawn(constraint=Constraint("regex", "a", "regex")), "regex"),
        (_drawn(constraint=Constraint("choice", '["a"]', "guided_choice")), "guided_choice"),
        (wish(ASKED, template="x"), "chat_template"),
        (wish(ASKED, documents=({"a": 1},)), "documents"),
        (wish(ASKED, continue_final_message=True), "continue_final_message"),
        (wish(), "messages"),
        (wish(Turn("user", (MediaPart("video", FILE, "messages[0]"),))), "messages[0]"),
        (wish(Turn("user", (MediaPart("audio", SOUND, "messages[0]"),))), "messages[0]"),
        (wish(Turn("user", (MediaPart("image", "", "messages[0]"),))), "messages[0]"),
        (GenerateRequest("m", (TextPrompt("x"),), Sampling(), True), "prompt"),
        (
            GenerateRequest(
                "m", (ChatPrompt((ASKED,)),), Sampling(), True, truncate_prompt_tokens=1
            ),
            "truncate_prompt_tokens",
        ),
    ],
)
def test_what_would_be_another_answer_is_refused(request_: GenerateRequest, where: str) -> None:
    with pytest.raises(SmgError) as raised:
        written(request_)
    assert raised.value.where == where


def test_what_the_model_refuses_is_left_out() -> None:
    lacks = frozenset({"temperature", "reasoning", "include", "metadata"})
    request = wish(ASKED, sampling=Sampling(temperature=1.5), thinking=Thinking(effort="low"))
    told = written(request, lacks=lacks)
    assert told.fields.keys() == {"model", "input", "store", "stream"}
    assert told.ignored == ("reasoning", "temperature")
    with pytest.raises(SmgError, match="the model does not take tools"):
        written(wish(ASKED, tools=(Tool("f"),)), lacks=frozenset({"tools"}))


def test_what_only_engines_know_is_told_of() -> None:
    sampling = Sampling(min_tokens=1, min_p=0.1, ignore_eos=True, keep_stop=True)
    request = wish(Turn("user", "Hi", name="Ann"), sampling=sampling, kwargs={"a": 1})
    assert written(request).ignored == (
        "min_tokens", "min_p", "ignore_eos", "keep_stop", "chat_template_kwargs", "messages.name",
    )  # fmt: skip
