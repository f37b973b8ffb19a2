"""Tools: what is declared."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Tool, ToolChoice
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def tool(name: Any = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def read(options: ReaderOptions | None = None, /, **parameters: Any) -> ChatPrompt:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **parameters}
    (prompt,) = ChatDialect(options or ReaderOptions()).read(body).request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


def refusal(options: ReaderOptions | None = None, /, **parameters: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        read(options, **parameters)
    return caught.value


def test_tools_are_passed_through() -> None:
    prompt = read(tools=[tool(), tool("g-1", description="d", parameters=SCHEMA, strict=True)])
    assert prompt.tools == (Tool("f"), Tool("g-1", "d", SCHEMA, strict=True))
    assert prompt.tools[1].where == "tools[1].function.parameters"
    assert prompt.choice == ToolChoice()


def test_legacy_functions_are_tools() -> None:
    prompt = read(functions=[{"name": "f", "parameters": SCHEMA}], function_call="none")
    assert prompt.tools == (Tool("f", None, SCHEMA),)
    assert prompt.choice.mode == "none"


def test_an_empty_list_declares_no_tools() -> None:
    assert read(tools=[]).tools == ()


def test_forbidding_calls_needs_no_tools() -> None:
    assert read(tool_choice="none").tools == ()


@pytest.mark.parametrize(
    ("tools", "where", "code"),
    [
        ([1], "tools[0]", "invalid_type"),
        ([{}], "tools[0].type", "missing_required_parameter"),
        ([{"type": "function"}], "tools[0].function", "missing_required_parameter"),
        ([{"type": "custom"}], "tools[0].custom", "missing_required_parameter"),
        ([tool(), tool(None)], "tools[1].function.name", "missing_required_parameter"),
        ([tool("")], "tools[0].function.name", "invalid_value"),
        ([tool("a b")], "tools[0].function.name", "invalid_value"),
        ([tool("a\n")], "tools[0].function.name", "invalid_value"),
        ([tool("x" * 65)], "tools[0].function.name", "invalid_value"),
        ([tool(), tool()], "tools[1].function.name", "invalid_value"),
        ([tool(description=1)], "tools[0].function.description", "invalid_type"),
        ([tool(parameters=[])], "tools[0].function.parameters", "invalid_type"),
        ([tool(strict="yes")], "tools[0].function.strict", "invalid_type"),
    ],
)
def test_a_mistake_in_a_tool_has_a_path(tools: list[Any], where: str, code: str) -> None:
    error = refusal(tools=tools)
    assert (error.where, error.code) == (where, code)


def test_tools_and_their_schemas_are_limited() -> None:
    options = ReaderOptions(tools_max=2, schema_max_bytes=100)
    assert refusal(options, tools=[tool("a"), tool("b"), tool("c")]).where == "tools"
    assert read(options, tools=[tool("a", parameters=SCHEMA)]).tools
    big = [tool("a", parameters=SCHEMA), tool("b", parameters=SCHEMA)]
    assert refusal(options, tools=big).where == "tools"
