"""Functions of a body, and which of them may or must be called."""

from typing import Any

import pytest

from smg_node.core.generation.request import ToolChoice
from smg_node.dialects.gemini.spelling import snake_case
from support.answers.gemini_bodies import FUNCTIONS, prompt_of, snaked


@pytest.mark.parametrize(
    "tools", [FUNCTIONS, snaked(FUNCTIONS), [{"functionDeclarations": [each]} for each in FUNCTIONS[0]["functionDeclarations"]]]
)  # fmt: skip
def test_functions_are_declared_in_any_grouping(tools: list[Any]) -> None:
    found = prompt_of(tools=tools).tools
    assert [(tool.name, tool.description, tool.parameters) for tool in found] == [
        ("look.up", "Looks.", {"type": "object"}),
        ("g", None, {"type": "object", "properties": {"x": {}}}),
        ("bare", None, None),
    ]


@pytest.mark.parametrize(
    ("calling", "expected", "strict"),
    [
        ({}, ToolChoice("auto", where="mode"), False),
        ({"mode": "AUTO"}, ToolChoice("auto", where="mode"), False),
        ({"mode": "any"}, ToolChoice("required", where="mode"), False),
        ({"mode": "NONE"}, ToolChoice("none", where="mode"), False),
        ({"mode": "VALIDATED"}, ToolChoice("auto", where="mode"), True),
        (
            {"mode": "ANY", "allowedFunctionNames": ["g", "g", "bare"]},
            ToolChoice("required", allowed=("g", "bare"), where="allowedFunctionNames"),
            False,
        ),
    ],
)
def test_calls_are_left_to_the_model_asked_for_or_not_wanted(
    calling: dict[str, Any], expected: ToolChoice, strict: bool
) -> None:
    for body in (
        {"tools": FUNCTIONS, "toolConfig": {"functionCallingConfig": calling}},
        {"tools": FUNCTIONS, "tool_config": {"function_calling_config": snaked(calling)}},
    ):
        prompt = prompt_of(**body)
        choice = prompt.choice
        assert (choice.mode, choice.allowed) == (expected.mode, expected.allowed)
        assert snake_case(choice.where.rpartition(".")[2]) == snake_case(expected.where)
        assert {tool.strict for tool in prompt.tools} == {strict}
