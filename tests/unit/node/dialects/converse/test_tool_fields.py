"""Tools at Bedrock: what may be called, what must be, and answers that follow a schema."""

import json
from typing import Any

import pytest

from smg_node.core.generation.request import Constraint, Sampling, Tool, ToolChoice
from smg_node.dialects.converse.vendor_answer import SCHEMA_TOOL
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.converse_bodies import BY_TOOL, FOUND_OUT, SPEC, TOOL, fields, written
from support.providers.converse_requests import SCHEMA


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (ToolChoice(), {"tools": [SPEC]}),
        (ToolChoice("required"), {"tools": [SPEC], "toolChoice": {"any": {}}}),
        (
            ToolChoice("named", "look_up"),
            {"tools": [SPEC], "toolChoice": {"tool": {"name": "look_up"}}},
        ),
        (ToolChoice(allowed=("look_up",)), {"tools": [SPEC]}),
        (ToolChoice("none"), None),
    ],
)
def test_the_choice_among_tools(choice: ToolChoice, told: Any) -> None:
    other = Tool("other", where="tools[1]")
    offered = (TOOL,) if choice.allowed is None else (TOOL, other)
    assert fields(tools=offered, choice=choice).get("toolConfig") == told


def test_a_tool_without_parameters_takes_an_object() -> None:
    bare = Tool("a", " ", None, True, where="x")
    loose = Tool("b", None, {"properties": {}}, where="x")
    assert fields(tools=(bare, loose))["toolConfig"]["tools"] == [
        {
            "toolSpec": {
                "name": "a",
                "inputSchema": {"json": {"type": "object", "properties": {}}},
                "strict": True,
            }
        },
        {
            "toolSpec": {
                "name": "b",
                "inputSchema": {"json": {"type": "object", "properties": {}}},
            }
        },
    ]


def test_one_call_at_most_is_not_to_be_had() -> None:
    one = ToolChoice(parallel=False)
    assert written(tools=(TOOL,), choice=one).ignored == ("parallel_tool_calls",)
    assert written(choice=one).ignored == ()


JSON_SCHEMA = Sampling(constraint=Constraint("json_schema", SCHEMA, "response_format"))
JSON_OBJECT = Sampling(constraint=Constraint("json_object", "", "response_format"))


def test_a_schema_is_a_text_format_with_closed_objects() -> None:
    [said] = fields(sampling=JSON_SCHEMA)["outputConfig"].values()
    closed = {**json.loads(SCHEMA), "additionalProperties": False}
    assert said["type"] == "json_schema"
    assert json.loads(said["structure"]["jsonSchema"]["schema"]) == closed


@pytest.mark.parametrize("options", [BY_TOOL, FOUND_OUT])
def test_a_schema_is_a_forced_call_where_there_is_no_text_format(options: WriterOptions) -> None:
    found = fields(sampling=JSON_SCHEMA, options=options)
    [tool] = found["toolConfig"]["tools"]
    assert tool["toolSpec"]["inputSchema"] == {"json": json.loads(SCHEMA)}
    assert found["toolConfig"]["toolChoice"] == {"tool": {"name": SCHEMA_TOOL}}
    assert "outputConfig" not in found
    among = fields(sampling=JSON_SCHEMA, options=options, tools=(TOOL,))["toolConfig"]
    assert [one["toolSpec"]["name"] for one in among["tools"]] == ["look_up", SCHEMA_TOOL]
    assert among["toolChoice"] == {"any": {}}


def test_any_object_is_a_forced_call() -> None:
    [tool] = fields(sampling=JSON_OBJECT)["toolConfig"]["tools"]
    assert tool["toolSpec"]["inputSchema"] == {"json": {"type": "object"}}
