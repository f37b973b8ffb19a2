"""Converse of stand-ins: what is refused, and how its calls and counts are."""

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from support.providers.stand_ins import Desk

MODEL = "us.anthropic.claude-haiku-4-5-20251001-v1%3A0"
SPEC: Any = {"toolSpec": {"name": "clock", "inputSchema": {"json": {"type": "object"}}}}
TOOLS: Any = {"tools": [SPEC]}
USE: Any = {"toolUse": {"toolUseId": "t1", "name": "clock", "input": {}}}
RESULT: Any = {"toolResult": {"toolUseId": "t1", "content": [{"json": {"at": "noon"}}]}}


def path(verb: str = "converse", model: str = MODEL) -> str:
    return f"/model/{model}/{verb}"


def user(*blocks: Any) -> Any:
    return {"role": "user", "content": list(blocks)}


def says(*blocks: Any) -> Any:
    return {"role": "assistant", "content": list(blocks)}


Q = user({"text": "q"})


def asked(text: str = "hello", **fields: Any) -> Any:
    return {"messages": [user({"text": text})], **fields}


REFUSED: list[tuple[Any, str]] = [
    ({"messages": []}, "The messages field is empty"),
    ({"messages": [says({"text": "a"})]}, "must start with a user message"),
    ({"messages": [Q, Q]}, "must alternate between user and assistant roles"),
    ({"messages": [user()]}, "The content field in the Message object at messages.0 is empty"),
    ({"messages": [user({"text": " "})]}, "The text field in the ContentBlock object at messages.0.content.0 is blank"),
    ({"messages": [user({"txt": "a"})]}, "must set one of the following keys"),
    ({"messages": [{"role": "robot", "content": []}]}, "Value 'robot'"),
    ({"messages": [Q, says(USE), user(RESULT)]}, "The toolConfig field must be defined"),
    ({"messages": [Q, says(USE), Q], "toolConfig": TOOLS}, "Expected toolResult blocks at messages.2.content for the following Ids: t1"),
    ({"messages": [Q, says(USE)], "toolConfig": TOOLS}, "for the following Ids: t1"),
    ({"messages": [Q, says({"text": "a"}), user(RESULT)], "toolConfig": TOOLS}, "exceeds the number of toolUse blocks"),
    ({"toolConfig": {"tools": []}}, "must not be empty"),
    ({"toolConfig": {"tools": [{"toolSpec": {"name": "a", "inputSchema": {"json": {}}}}]}}, "must be one of the following: object"),
    ({"toolConfig": {**TOOLS, "toolChoice": {"tool": {"name": "x"}}}}, "The tool x of toolChoice"),
    ({"inferenceConfig": {"maxTokens": 0}}, "maximum tokens"),
    ({"inferenceConfig": {"temperature": 2}}, "must be between 0 and 1"),
    ({"messages": [Q, says({"reasoningContent": {"reasoningText": {"text": "a"}}}), Q]}, "Invalid `signature`"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_what_bedrock_refuses_is_refused(fields: Any, words: str) -> None:
    reply = Desk("bedrock").ask(path(), {**asked(), **fields})
    assert (reply.status, reply.headers["x-amzn-errortype"]) == (400, "ValidationException:")
    assert words in msgspec.json.decode(reply.body)["message"]


def test_new_models_refuse_sampling() -> None:
    body = asked(inferenceConfig={"temperature": 0.5})
    assert Desk("bedrock").ask(path(), body).status == 200
    assert Desk("bedrock").ask(path(model="eu.anthropic.claude-sonnet-5"), body).status == 400


def test_a_result_of_json_is_told_as_json() -> None:
    body = {"messages": [Q, says(USE), user(RESULT)], "toolConfig": TOOLS}
    content = Desk("bedrock").told(path(), body)["output"]["message"]["content"]
    assert content == [{"text": 'The results are: {"at":"noon"}'}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "end_turn"),
        ("call clock", "tool_use"),
        ("refuse", "content_filtered"),
        ("filter", "guardrail_intervened"),
    ],
)
def test_each_ending_has_its_reason(text: str, reason: str) -> None:
    assert Desk("bedrock").told(path(), asked(text, toolConfig=TOOLS))["stopReason"] == reason


def test_counts_agree_with_the_usage() -> None:
    desk = Desk("bedrock")
    usage = desk.told(path(), asked())["usage"]
    counted = desk.told(path("count-tokens"), {"input": {"converse": asked()}})
    assert counted == {"inputTokens": usage["inputTokens"]}
    body = {
        "anthropic_version": "v",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "q"}],
    }
    inner = {"invokeModel": {"body": b64encode(msgspec.json.encode(body)).decode()}}
    assert desk.told(path("count-tokens"), {"input": inner})["inputTokens"] > 0
    assert desk.ask(path("count-tokens"), {"input": {}}).status == 400


def test_a_schema_shapes_the_answer() -> None:
    schema = '{"type":"object","properties":{"n":{"type":"integer"}}}'
    form = {"type": "json_schema", "structure": {"jsonSchema": {"schema": schema}}}
    content = Desk("bedrock").told(path(), asked("n=7", outputConfig={"textFormat": form}))
    assert content["output"]["message"]["content"] == [{"text": '{"n":7}'}]
