from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.pool import Target
from smg_node.mcp.server_spec import ServerSpec, ToolRule, Verdict
from smg_node.mcp.serving.offered_tools import (
    PAGE_TOOLS,
    OfferedTool,
    decision,
    listed,
    offered,
    page_of,
    splits,
)
from smg_node.mcp.tool_servers import ResolvedServer
from smg_node.mcp.tools.tool import Tool

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "site": {"type": "string"}, "n": {}},
    "required": ["query", "site", "n"],
}


def server(name: str, **said: Any) -> ResolvedServer:
    definition = ServerDefinition(name, url="http://127.0.0.1:1/mcp")
    return ResolvedServer(name, ServerSpec(definition, **said), Target(definition))


def tools(*names: str) -> dict[str, Tool]:
    return {name: Tool(name) for name in names}


def names(found: list[OfferedTool]) -> list[str]:
    return [one.name for one in found]


def test_tools_of_all_servers_have_the_servers_name_before_theirs() -> None:
    lists = [(server("b"), tools("y", "x")), (server("a"), tools("x"))]
    assert names(offered(lists, plain=False)) == ["a__x", "b__x", "b__y"]
    assert names(offered(lists[:1], plain=True)) == ["x", "y"]


def test_hidden_and_denied_tools_are_not_seen() -> None:
    one = server("a", tools={"h": ToolRule(hidden=True), "d": ToolRule(approval="deny")})
    lists = [(one, tools("h", "d", "ok"))]
    assert names(offered(lists, plain=True)) == ["ok"]


def test_of_two_servers_that_make_one_name_the_longer_one_has_it() -> None:
    lists = [(server("a"), tools("b__c")), (server("a__b"), tools("c"))]
    (one,) = offered(lists, plain=False)
    assert (one.name, one.server.label) == ("a__b__c", "a__b")
    meant = [(found.label, tool) for found, tool in splits("a__b__c", [x for x, _ in lists])]
    assert meant == [("a__b", "c"), ("a", "b__c")]
    assert list(splits("a_b", [server("a")])) == []


@given(st.sets(st.text(min_size=1, max_size=5), max_size=250))
def test_pages_hold_every_tool_once_and_in_order(given_names: set[str]) -> None:
    try:
        "".join(given_names).encode()
    except UnicodeEncodeError:
        return
    found = offered([(server("a"), tools(*given_names))], plain=True)
    seen: list[str] = []
    cursor = ""
    while True:
        page = page_of(found, cursor)
        assert page is not None
        assert len(page.tools) <= PAGE_TOOLS
        seen += names(list(page.tools))
        cursor = page.cursor
        if not cursor:
            break
    assert seen == sorted(given_names)


def test_a_page_goes_on_where_the_last_one_ended_whatever_came_or_went() -> None:
    before = offered([(server("a"), tools(*(f"t{n:03}" for n in range(150))))], plain=True)
    first = page_of(before, "")
    assert first is not None
    left = [one for one in before if one.name not in ("t099", "t120")]
    second = page_of(left, first.cursor)
    assert second is not None
    assert names(list(second.tools)) == [f"t{n:03}" for n in range(100, 150) if n != 120]


@given(st.text(max_size=40))
def test_any_cursor_is_a_page_or_none(cursor: str) -> None:
    nothing: list[OfferedTool] = []
    page = page_of(nothing, cursor)
    assert page is None or not page.tools


@pytest.mark.parametrize("cursor", ["x", "YWJj", "=", "ß", "A" * 3000, "5"])
def test_cursors_of_others_are_refused(cursor: str) -> None:
    assert page_of([], cursor) is None


def test_a_row_has_what_the_server_said_and_the_operators_hints() -> None:
    rule = ToolRule(read_only=True)
    tool = Tool("t", "Does.", SCHEMA, {"type": "array"}, {"title": "T", "readOnlyHint": False})
    one = OfferedTool("a__t", server("a", tools={"t": rule}), tool)
    row = listed(one, modern=True)
    assert row == {
        "name": "a__t",
        "description": "Does.",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "array"},
        "annotations": {"title": "T", "readOnlyHint": True},
    }
    assert "outputSchema" not in listed(one, modern=False)


def test_a_schema_without_a_type_is_that_of_an_object() -> None:
    one = OfferedTool("t", server("a"), Tool("t"))
    assert listed(one, modern=True)["inputSchema"] == {"type": "object"}


def test_fixed_arguments_are_not_shown() -> None:
    rule = ToolRule(rename={"q": "query"}, defaults={"n": 3}, fixed={"site": "docs"})
    one = OfferedTool("t", server("a", tools={"t": rule}), Tool("t", input_schema=SCHEMA))
    assert one.schema["properties"] == {"q": {"type": "string"}, "n": {}}
    assert one.schema["required"] == ["q"]


@pytest.mark.parametrize(
    ("said", "verdict", "rule"),
    [
        ({}, "allow", "default"),
        ({"tools": {"t": ToolRule(approval="ask")}}, "ask", "tools.t.approval"),
        ({"rules": (("a/t*", "deny"), ("*", "allow"))}, "deny", "rules: a/t*"),
        ({"trust": "untrusted"}, "ask", "trust: untrusted"),
        ({"trust": "untrusted", "tools": {"t": ToolRule(read_only=True)}}, "allow", "default"),
        ({"trust": "sandboxed"}, "deny", "trust: sandboxed"),
    ],
)
def test_an_operators_rule_decides_and_is_named(
    said: dict[str, Any], verdict: Verdict, rule: str
) -> None:
    tool = Tool("t", annotations={"readOnlyHint": True, "openWorldHint": False})
    assert decision(server("a", **said), tool)[:2] == (verdict, rule)
