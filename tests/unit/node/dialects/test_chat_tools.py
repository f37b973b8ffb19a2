"""Tools: what is declared, and which wishes this release can grant."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.request import ChatPrompt, Tool
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
    assert not prompt.tools_hidden


def test_legacy_functions_are_tools() -> None:
    prompt = read(functions=[{"name": "f", "parameters": SCHEMA}], function_call="none")
    assert prompt.tools == (Tool("f", None, SCHEMA),)
    assert prompt.tools_hidden


def test_an_empty_list_declares_no_tools() -> None:
    assert read(tools=[]).tools == ()


@pytest.mark.parametrize(("choice", "hidden"), [("none", True), ("auto", False), (None, False)])
def test_calling_may_be_forbidden_or_left_to_the_model(choice: Any, hidden: bool) -> None:
    assert read(tools=[tool()], tool_choice=choice).tools_hidden is hidden


def test_forbidding_calls_needs_no_tools() -> None:
    assert read(tool_choice="none").tools == ()


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "f"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        {"type": "custom", "custom": {"name": "f"}},
    ],
)
def test_a_wish_that_cannot_be_enforced_is_refused(choice: Any) -> None:
    error = refusal(tools=[tool()], tool_choice=choice)
    assert (error.code, error.where) == ("unsupported_parameter", "tool_choice")


def test_a_named_legacy_function_is_refused() -> None:
    error = refusal(functions=[{"name": "f"}], function_call={"name": "f"})
    assert (error.code, error.where) == ("unsupported_parameter", "function_call")


def test_one_call_at_a_time_is_refused_only_where_calls_can_happen() -> None:
    error = refusal(tools=[tool()], parallel_tool_calls=False)
    assert (error.code, error.where) == ("unsupported_parameter", "parallel_tool_calls")
    assert read(tools=[tool()], parallel_tool_calls=True).tools
    assert read(tools=[tool()], parallel_tool_calls=False, tool_choice="none").tools
    assert read(parallel_tool_calls=False).tools == ()


@pytest.mark.parametrize(
    ("tools", "where", "code"),
    [
        ([1], "tools[0]", "invalid_type"),
        ([{}], "tools[0].type", "missing_required_parameter"),
        ([{"type": "function"}], "tools[0].function", "missing_required_parameter"),
        ([{"type": "custom", "custom": {"name": "x"}}], "tools[0].type", "unsupported_parameter"),
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
