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
    listed,
    offered,
    page_of,
    sent_arguments,
    shown_schema,
    splits,
)
from smg_node.mcp.serving.standing_policy import standing_verdict
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


def allowed(server: ResolvedServer, tool: Tool) -> Verdict:
    return "allow"


def names(found: list[OfferedTool]) -> list[str]:
    return [one.name for one in found]


def test_tools_of_all_servers_have_the_servers_name_before_theirs() -> None:
    lists = [(server("b"), tools("y", "x")), (server("a"), tools("x"))]
    assert names(offered(lists, allowed, plain=False)) == ["a__x", "b__x", "b__y"]
    assert names(offered(lists[:1], allowed, plain=True)) == ["x", "y"]


def test_hidden_and_denied_tools_are_not_seen() -> None:
    one = server("a", tools={"h": ToolRule(hidden=True), "d": ToolRule(approval="deny")})
    lists = [(one, tools("h", "d", "ok"))]
    assert names(offered(lists, standing_verdict, plain=True)) == ["ok"]


def test_of_two_servers_that_make_one_name_the_longer_one_has_it() -> None:
    lists = [(server("a"), tools("b__c")), (server("a__b"), tools("c"))]
    (one,) = offered(lists, allowed, plain=False)
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
    found = offered([(server("a"), tools(*given_names))], allowed, plain=True)
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
    before = offered([(server("a"), tools(*(f"t{n:03}" for n in range(150))))], allowed, plain=True)
    first = page_of(before, "")
    assert first is not None
    left = [one for one in before if one.name not in ("t099", "t120")]
    second = page_of(left, first.cursor)
    assert second is not None
    assert names(list(second.tools)) == [f"t{n:03}" for n in range(100, 150) if n != 120]


@given(st.text(max_size=40))
def test_any_cursor_is_a_page_or_none(cursor: str) -> None:
    page = page_of([], cursor)
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
    assert shown_schema({}, ToolRule()) == {"type": "object"}


def test_fixed_arguments_are_not_shown_and_cannot_be_given() -> None:
    rule = ToolRule(rename={"q": "query"}, defaults={"n": 3}, fixed={"site": "docs"})
    shown = shown_schema(SCHEMA, rule)
    assert shown["properties"] == {"q": {"type": "string"}, "n": {}}
    assert shown["required"] == ["q"]
    sent = sent_arguments(b"", {"q": "x", "site": "elsewhere"}, rule)
    assert sent == b'{"n":3,"query":"x","site":"docs"}'


def test_arguments_that_no_rule_touches_are_sent_as_they_came() -> None:
    text = b'{"n": 1.10}'
    assert sent_arguments(text, {"n": 1.1}, ToolRule()) is text


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({}, "allow"),
        ({"tools": {"t": ToolRule(approval="ask")}}, "ask"),
        ({"rules": (("t*", "deny"), ("*", "allow"))}, "deny"),
        ({"rules": (("x*", "deny"),)}, "allow"),
        ({"tools": {"t": ToolRule(approval="allow")}, "rules": (("*", "deny"),)}, "allow"),
        ({"trust": "trusted"}, "allow"),
        ({"trust": "untrusted"}, "ask"),
        ({"trust": "untrusted", "tools": {"t": ToolRule(read_only=True)}}, "allow"),
        ({"trust": "sandboxed"}, "deny"),
        ({"trust": "sandboxed", "tools": {"t": ToolRule(read_only=True)}}, "allow"),
    ],
)
def test_the_first_rule_that_speaks_decides(said: dict[str, Any], verdict: Verdict) -> None:
    tool = Tool("t", annotations={"readOnlyHint": True, "openWorldHint": False})
    assert standing_verdict(server("a", **said), tool) == verdict
