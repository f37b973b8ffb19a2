"""A wish as a body of Chat Completions: what every server knows, and what only some do in the client's own words."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaKind,
    MediaPart,
    Sampling,
    TextPart,
    Tool,
    ToolCall,
    Turn,
)
from smg_node.dialects.chat.writer import call_ids, chat_fields, messages_of
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.reader import ResponsesReader

HI = Turn("user", "hi")
HELLO = {"role": "user", "content": "hi"}


def wish(*turns: Turn, sampling: Sampling | None = None, **prompt: Any) -> GenerateRequest:
    asked = ChatPrompt(turns or (HI,), **prompt)
    return GenerateRequest("m", (asked,), sampling or Sampling(), stream=False)


def body_of(**asked: Any) -> dict[str, Any]:
    """Return the body that a client of Responses is served with."""
    ask = ResponsesReader(ReaderOptions()).read({"model": "m", "input": "hi", **asked})
    return chat_fields(generate_request(ask, ask.items))


def messages(*turns: Turn) -> list[dict[str, Any]]:
    return messages_of(ChatPrompt(turns))


def test_a_plain_wish_says_nothing_that_nobody_said() -> None:
    assert body_of() == {
        "model": "m",
        "messages": [HELLO],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"max_output_tokens": 5}, {"max_tokens": 5}),
        ({"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
        ({"seed": 7, "stop": ["a", "b"]}, {"seed": 7, "stop": ["a", "b"]}),
        ({"top_k": 4, "min_p": 0.1}, {"top_k": 4, "min_p": 0.1}),
        ({"repetition_penalty": 1.1}, {"repetition_penalty": 1.1}),
        ({"frequency_penalty": 1, "presence_penalty": 0}, {"frequency_penalty": 1}),
        ({"min_tokens": 3, "ignore_eos": True}, {"min_tokens": 3, "ignore_eos": True}),
        ({"skip_special_tokens": False}, {"skip_special_tokens": False}),
        ({"stop_token_ids": [5, 6]}, {"stop_token_ids": [5, 6]}),
        ({"logit_bias": {"5": -1}}, {"logit_bias": {"5": -1}}),
        ({"no_stop_trim": True}, {"no_stop_trim": True}),
        ({"include_stop_str_in_output": True}, {"include_stop_str_in_output": True}),
        ({"lora_path": "a"}, {"lora_path": "a"}),
        (
            {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
            {"logprobs": True, "top_logprobs": 2},
        ),
        (
            {"text": {"format": {"type": "json_object"}}},
            {"response_format": {"type": "json_object"}},
        ),
        ({"regex": "a+"}, {"regex": "a+"}),
        ({"guided_choice": ["a", "b"]}, {"guided_choice": ["a", "b"]}),
        ({"structured_outputs": {"grammar": "g"}}, {"structured_outputs": {"grammar": "g"}}),
        (
            {"structural_tag": {"begin": "<a>"}},
            {"response_format": {"type": "structural_tag", "begin": "<a>"}},
        ),
        (
            {"reasoning": {"effort": "low"}},
            {"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "low"}},
        ),
        (
            {"reasoning": {"effort": "none"}},
            {
                "chat_template_kwargs": {
                    "reasoning_effort": "none",
                    "enable_thinking": False,
                    "thinking": False,
                }
            },
        ),
        (
            {"enable_thinking": True},
            {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
        ),
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "chat_template_kwargs": {"thinking": "mine"},
            },
            {
                "chat_template_kwargs": {
                    "enable_thinking": True,
                    "thinking": "mine",
                    "thinking_budget": 2000,
                }
            },
        ),
        ({"chat_template_kwargs": {"x": 1}}, {"chat_template_kwargs": {"x": 1}}),
    ],
)
def test_each_wish_has_its_field(asked: dict[str, Any], fields: dict[str, Any]) -> None:
    said = body_of(**asked)
    assert {key: value for key, value in said.items() if key not in body_of()} == fields


def test_a_schema_goes_as_the_form_that_all_servers_know() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    form = {"type": "json_schema", "name": "x", "schema": schema}
    said = body_of(text={"format": form})["response_format"]
    assert said["type"] == "json_schema"
    assert said["json_schema"]["schema"] == schema
    assert list(said["json_schema"]["schema"]["properties"]) == ["b", "a"]


def test_tools_are_told_and_whether_they_may_be_called() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
    said = body_of(tools=[tool, {"type": "custom", "name": "c", "description": "d"}])
    first, second = [each["function"] for each in said["tools"]]
    assert first == {"name": "f", "parameters": {"type": "object"}, "strict": True}
    assert second["parameters"]["required"] == ["input"]
    assert said["tool_choice"] == "auto"
    assert body_of(tools=[tool], tool_choice="none")["tool_choice"] == "none"
    bare = chat_fields(wish(tools=(Tool("f"),)))["tools"][0]["function"]
    assert bare["parameters"] == {"type": "object", "properties": {}}


def test_turns_are_messages_with_their_thoughts_calls_and_results() -> None:
    turns = (
        HI,
        Turn("assistant", None, reasoning="hm", calls=(ToolCall("c1", "f", '{"a": 1}'),)),
        Turn("tool", "9", answers_call="c1"),
        Turn("assistant", "so", extra={"phase": "final", "role": "user", "none": None}),
    )
    assert messages(*turns) == [
        HELLO,
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
            ],
        },
        {"role": "tool", "content": "9", "tool_call_id": "c1"},
        {"role": "assistant", "content": "so", "phase": "final"},
    ]
    assert call_ids(ChatPrompt(turns)) == {"c1"}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("", "{}"),
        ('{"b":1,  "a": 2}', '{"b":1,  "a": 2}'),
        ("{", '{"INVALID_JSON": "{"}'),
        ("[1]", '{"INVALID_JSON": "[1]"}'),
        ('"x"', '{"INVALID_JSON": "\\"x\\""}'),
        ("\ud800", '{"INVALID_JSON": "\ufffd"}'),
        ('{"a": "\\ud800", "b": "é"}', '{"a": "\ufffd", "b": "é"}'),
        ('{"a": "x\ny"}', '{"a": "x\\ny"}'),
    ],
)
def test_arguments_that_are_no_object_are_put_into_one(text: str, sent: str) -> None:
    [message] = messages(Turn("assistant", None, calls=(ToolCall("c", "f", text),)))
    assert message["tool_calls"][0]["function"]["arguments"] == sent


def test_what_systems_and_developers_say_first_is_one_message() -> None:
    said = messages(Turn("system", "a"), Turn("developer", "b"), HI, Turn("developer", "c"))
    assert said == [
        {"role": "system", "content": "a\n\nb"},
        HELLO,
        {"role": "system", "content": "c"},
    ]
    parts = messages(Turn("system", "a"), Turn("system", (TextPart("b"), TextPart("c"))))
    assert [part["text"] for part in parts[0]["content"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("kind", "source", "part"),
    [
        (
            "image",
            "https://a/b.png",
            {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
        ),
        ("video", "https://a/b", {"type": "video_url", "video_url": {"url": "https://a/b"}}),
        (
            "audio",
            "data:audio/wav;base64,QUJD",
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        ),
        ("audio", "https://a/b", {"type": "audio_url", "audio_url": {"url": "https://a/b"}}),
        (
            "file",
            "data:x;base64,QQ==",
            {"type": "file", "file": {"file_data": "data:x;base64,QQ=="}},
        ),
    ],
)
def test_media_go_as_parts(kind: MediaKind, source: str, part: dict[str, Any]) -> None:
    turn = Turn("user", (TextPart("look"), MediaPart(kind, source, "input[0]")))
    assert messages(turn)[0]["content"] == [{"type": "text", "text": "look"}, part]


@pytest.mark.parametrize(
    ("detail", "told"), [("low", {"detail": "low"}), ("high", {"detail": "high"}), ("original", {})]
)
def test_servers_are_told_the_detail_that_they_know(detail: Any, told: dict[str, str]) -> None:
    turn = Turn("user", (MediaPart("image", "u", "input[0]", detail),))
    part = {"type": "image_url", "image_url": {"url": "u", **told}}
    assert messages(turn)[0]["content"] == [part]


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (
            wish(Turn("user", (MediaPart("file", "https://a", "input[0].content[1]"),))),
            "input[0].content[1]",
        ),
        (wish(Turn("user", (MediaPart("image", "", "input[0]"),))), "input[0]"),
        (wish(sampling=Sampling(n=2, where={"n": "n"})), "n"),
        (wish(sampling=Sampling(prompt_logprobs=1)), "prompt_logprobs"),
        (
            GenerateRequest("m", (ChatPrompt((HI,)),), Sampling(), False, truncate_prompt_tokens=5),
            "truncate_prompt_tokens",
        ),
    ],
)
def test_what_no_chat_can_carry_is_refused_with_its_path(
    asked: GenerateRequest, where: str
) -> None:
    with pytest.raises(SmgError) as found:
        chat_fields(asked)
    assert (found.value.where, found.value.code) == (where, "unsupported_parameter")


def test_what_else_a_prompt_can_say_goes_along() -> None:
    constraint = Constraint("ebnf", "g", "guided_grammar")
    said = chat_fields(
        wish(
            sampling=Sampling(constraint=constraint),
            template="t",
            documents=({"a": 1},),
            add_generation_prompt=False,
            continue_final_message=True,
        )
    )
    assert said["guided_grammar"] == "g"
    assert (said["chat_template"], said["documents"]) == ("t", [{"a": 1}])
    assert said["add_generation_prompt"] is False
    assert said["continue_final_message"] is True
