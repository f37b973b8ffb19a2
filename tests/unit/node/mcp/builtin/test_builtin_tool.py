"""Functions that models are offered for built-in tools."""

from typing import get_args

import pytest

from smg_node.core.generation.tool_serving import BuiltinKind
from smg_node.mcp.builtin.builtin_tool import argument_of, builtin_tool

KINDS: tuple[BuiltinKind, ...] = get_args(BuiltinKind)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_a_function_of_one_argument(kind: BuiltinKind) -> None:
    tool = builtin_tool(kind, {})
    assert tool.name == kind
    assert tool.description
    assert tool.parameters is not None
    assert list(tool.parameters["properties"]) == tool.parameters["required"] == [argument_of(kind)]
    assert tool.parameters["additionalProperties"] is False


def test_the_arguments_are_those_of_the_specification() -> None:
    names = ["query", "url", "queries", "code", "prompt", "query"]
    assert [argument_of(kind) for kind in KINDS] == names


@pytest.mark.parametrize(
    ("spelled", "argument"),
    [
        ("tool_search", "query"),
        ("tool_search_tool_bm25", "query"),
        ("tool_search_tool_bm25_20251119", "query"),
        ("tool_search_tool_regex", "pattern"),
        ("tool_search_tool_regex_20251119", "pattern"),
    ],
)
def test_a_search_for_tools_takes_words_or_a_pattern(spelled: str, argument: str) -> None:
    tool = builtin_tool("tool_search", {}, spelled=spelled, name="find")
    assert tool.name == "find"
    assert tool.parameters is not None
    assert tool.parameters["required"] == [argument]


def test_settings_are_not_told_to_the_model() -> None:
    settings = {"type": "web_search", "user_location": {"city": "Bern"}}
    assert builtin_tool("web_search", settings) == builtin_tool("web_search", {})
