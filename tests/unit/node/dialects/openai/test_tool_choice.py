"""Which tools must, may or must not be called, as both APIs and the legacy fields spell it."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ToolChoice
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.chat.writer import chat_fields
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.reader import ResponsesReader

NAMED = {"type": "function", "function": {"name": "g"}}
FLAT = {"type": "function", "name": "g"}


def chat_tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


TOOLS = [chat_tool("f"), chat_tool("g"), chat_tool("h")]
FLAT_TOOLS = [
    {"type": "function", "name": "f"},
    {"type": "function", "name": "g"},
    {"type": "custom", "name": "h"},
]


def chat(**parameters: Any) -> ToolChoice:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **parameters}
    reading = ChatDialect(ReaderOptions()).read(body)
    (prompt,) = reading.request.prompts
    choice = prompt.choice  # type: ignore[union-attr]  # chats have nothing but chat prompts
    assert isinstance(choice, ToolChoice)
    return choice


def responses(**parameters: Any) -> ToolChoice:
    return ResponsesReader(ReaderOptions()).read({"model": "m", "input": "hi", **parameters}).choice


def allowed(mode: str, *names: str) -> dict[str, Any]:
    tools = [chat_tool(name) for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        (None, ToolChoice()),
        ("none", ToolChoice("none")),
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        (NAMED, ToolChoice("named", "g")),
        (allowed("auto", "f", "h", "f"), ToolChoice("auto", allowed=("f", "h"))),
        (allowed("required", "g"), ToolChoice("required", allowed=("g",))),
    ],
)
def test_every_spelling_of_chats(said: Any, choice: ToolChoice) -> None:
    assert chat(tools=TOOLS, tool_choice=said) == choice


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        ("none", ToolChoice("none")),
        ("auto", ToolChoice()),
        ("required", ToolChoice("required")),
        (FLAT, ToolChoice("named", "g")),
        ({"type": "custom", "name": "h"}, ToolChoice("named", "h")),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [FLAT, FLAT_TOOLS[2]]},
            ToolChoice(allowed=("g", "h")),
        ),
    ],
)
def test_every_spelling_of_responses(said: Any, choice: ToolChoice) -> None:
    assert responses(tools=FLAT_TOOLS, tool_choice=said) == choice


def test_auto_needs_only_a_list_of_tools_which_may_be_empty() -> None:
    assert chat(tools=[], tool_choice="auto") == ToolChoice("auto")
    assert chat(tools=[], tool_choice="none") == ToolChoice("none")
    legacy = chat(functions=[], function_call="auto")
    assert legacy == ToolChoice(parallel=False, where="function_call")
    for said in ("required", NAMED, allowed("auto", "f")):
        with pytest.raises(SmgError, match="tool_choice: is only allowed when tools are given"):
            chat(tools=[], tool_choice=said)


def test_whether_several_may_be_called_is_part_of_the_choice_in_any_order() -> None:
    one = ToolChoice("required", parallel=False)
    assert chat(tools=TOOLS, parallel_tool_calls=False, tool_choice="required") == one
    assert chat(tool_choice="required", parallel_tool_calls=False, tools=TOOLS) == one
    assert chat(tools=TOOLS, parallel_tool_calls=True).parallel
    assert not responses(tools=FLAT_TOOLS, parallel_tool_calls=False).parallel
    assert not chat(parallel_tool_calls=False).parallel


def test_the_legacy_fields_allow_one_call_at_most() -> None:
    functions = [{"name": "f"}, {"name": "g"}]
    where = "function_call"
    assert chat(functions=functions) == ToolChoice(parallel=False)
    for said, choice in (
        ("none", ToolChoice("none", parallel=False, where=where)),
        ("auto", ToolChoice(parallel=False, where=where)),
        ({"name": "g"}, ToolChoice("named", "g", parallel=False, where=where)),
    ):
        assert chat(functions=functions, function_call=said) == choice


@pytest.mark.parametrize(
    ("parameters", "where", "code"),
    [
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"tool_choice": NAMED}, "tool_choice", "invalid_value"),
        ({"tool_choice": allowed("auto", "f")}, "tool_choice", "invalid_value"),
        ({"function_call": "auto", "tools": None}, "function_call", "invalid_value"),
        ({"tools": TOOLS, "tool_choice": chat_tool("x")}, "tool_choice", "invalid_value"),
        (
            {"tools": TOOLS, "tool_choice": allowed("auto", "f", "x")},
            "tool_choice",
            "invalid_value",
        ),
        ({"tools": TOOLS, "tool_choice": "maybe"}, "tool_choice", "invalid_value"),
        ({"tools": TOOLS, "tool_choice": []}, "tool_choice", "invalid_type"),
        ({"tools": TOOLS, "tool_choice": {}}, "tool_choice.type", "missing_required_parameter"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function"}},
            "tool_choice.function",
            "missing_required_parameter",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "custom", "custom": {"name": "x"}}},
            "tool_choice",
            "invalid_value",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "telepathy"}},
            "tool_choice.type",
            "unsupported_parameter",
        ),
        (
            {"tools": TOOLS, "tool_choice": allowed("auto")},
            "tool_choice.allowed_tools.tools",
            "invalid_value",
        ),
        (
            {"tools": TOOLS, "tool_choice": allowed("named", "f")},
            "tool_choice.allowed_tools.mode",
            "invalid_value",
        ),
        (
            {"functions": [{"name": "f"}], "function_call": "required"},
            "function_call",
            "invalid_value",
        ),
        (
            {"functions": [{"name": "f"}], "function_call": {"name": "g"}},
            "function_call",
            "invalid_value",
        ),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused_at_its_place(
    parameters: dict[str, Any], where: str, code: str
) -> None:
    with pytest.raises(SmgError) as caught:
        chat(**parameters)
    assert (caught.value.where, caught.value.code) == (where, code)


@pytest.mark.parametrize(
    ("parameters", "where", "code"),
    [
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        (
            {"tools": FLAT_TOOLS, "tool_choice": {"type": "function", "name": "x"}},
            "tool_choice",
            "invalid_value",
        ),
        (
            {"tools": FLAT_TOOLS, "tool_choice": {"type": "function"}},
            "tool_choice.name",
            "missing_required_parameter",
        ),
        (
            {"tools": FLAT_TOOLS, "tool_choice": {"type": "telepathy"}},
            "tool_choice.type",
            "unsupported_parameter",
        ),
    ],
)
def test_a_choice_of_responses_that_makes_no_sense_is_refused(
    parameters: dict[str, Any], where: str, code: str
) -> None:
    with pytest.raises(SmgError) as caught:
        responses(**parameters)
    assert (caught.value.where, caught.value.code) == (where, code)


def test_only_one_problem_is_told_of_a_tool_that_cannot_be_read() -> None:
    with pytest.raises(SmgError) as caught:
        chat(tools=[chat_tool("a b")], tool_choice=chat_tool("a b"))
    assert caught.value.where == "tools[0].function.name"


@pytest.mark.parametrize("said", ["none", "auto", "required", NAMED, allowed("required", "f", "g")])
def test_workers_that_speak_http_are_told_the_choice_as_it_came(said: Any) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": TOOLS,
        "tool_choice": said,
        "parallel_tool_calls": False,
    }
    fields = chat_fields(ChatDialect(ReaderOptions()).read(body).request)
    assert fields["tool_choice"] == said
    assert fields["parallel_tool_calls"] is False
