"""Catalog: what is offered, what is withheld, and names in a history."""

from typing import Any

from smg_node.core.generation.request import Tool, ToolCall, Turn, TurnBlock
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    AskedServer,
    ListedTool,
    ToolFilter,
)
from smg_node.mcp.catalog.catalog import BuiltinListing, Catalog, ServerListing, build_catalog
from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.server_spec import ServerSpec, ToolRule

READS = {"readOnlyHint": True}


def spec(**fields: Any) -> ServerSpec:
    return ServerSpec(ServerDefinition("s", url="http://s.test"), **fields)


def listing(*tools: ListedTool | str, asked: AskedServer | None = None, **fields: Any) -> Any:
    listed = tuple(one if isinstance(one, ListedTool) else ListedTool(one) for one in tools)
    pinned = fields.pop("pinned", False)
    return ServerListing(asked or AskedServer("s"), spec(**fields), listed, pinned=pinned)


def catalog(
    *servers: ServerListing, taken: tuple[str, ...] = (), searched: bool = False
) -> Catalog:
    return build_catalog(servers, (), taken, searched=searched)


def test_tools_are_offered_sorted_by_name() -> None:
    found = catalog(listing("write", "read"), listing("ask", asked=AskedServer("a")))
    assert [tool.name for tool in found.functions()] == ["ask", "read", "write"]


def test_a_clients_function_keeps_its_name() -> None:
    found = catalog(listing("read"), taken=("read",))
    assert [tool.name for tool in found.functions()] == ["s__read"]
    assert found.offered["s__read"].owner == ToolOwner("s", "read")
    assert found.name_of(ToolOwner("s", "read", approval="x")) == "s__read"


def test_both_halves_of_a_filter_must_fit() -> None:
    tools = (
        ListedTool("a", annotations=READS),
        ListedTool("b"),
        ListedTool("c", annotations=READS),
    )
    asked = AskedServer("s", tools=ToolFilter(("a", "b"), read_only=True))
    found = catalog(listing(*tools, asked=asked, trust="trusted"))
    assert list(found.offered) == ["a"]
    assert set(found.withheld) == {"b", "c", "s__b", "s__c"}


def test_hints_count_from_trusted_servers_and_by_an_operators_word() -> None:
    tools = (ListedTool("a", annotations=READS), ListedTool("b"))
    asked = AskedServer("s", tools=ToolFilter(read_only=True))
    assert not catalog(listing(*tools, asked=asked)).offered
    rules = {"b": ToolRule(read_only=True)}
    assert list(catalog(listing(*tools, asked=asked, tools=rules)).offered) == ["b"]
    rules = {"a": ToolRule(read_only=False)}
    assert not catalog(listing(*tools, asked=asked, tools=rules, trust="trusted")).offered


def test_a_list_of_the_clients_own_says_nothing_of_itself() -> None:
    tools = (ListedTool("a", annotations=READS),)
    asked = AskedServer("s", tools=ToolFilter(read_only=True))
    assert not catalog(listing(*tools, asked=asked, trust="trusted", pinned=True)).offered


def test_a_hidden_tool_is_withheld_by_every_name_it_may_be_called() -> None:
    rules = {"drop": ToolRule(hidden=True, alias="remove")}
    found = catalog(listing("drop", "read", tools=rules))
    assert list(found.offered) == ["read"]
    assert set(found.withheld) == {"drop", "remove", "s__drop"}
    assert "operator" in found.withheld["drop"].rule


def test_a_tool_is_deferred_only_where_something_finds_it() -> None:
    asked = AskedServer("s", deferred_tools=("read",))
    rules = {"write": ToolRule(defer=True)}
    servers = listing("read", "write", "add", asked=asked, tools=rules)
    found = catalog(servers, searched=True)
    assert [tool.owner.tool for tool in found.deferred()] == ["read", "write"]
    assert not catalog(servers).deferred()


def test_a_listing_shows_what_is_offered_as_the_server_lists_it() -> None:
    schema = {"type": "object", "properties": {"city": {}}}
    rules = {"w": ToolRule(rename={"place": "city"}), "x": ToolRule(hidden=True)}
    found = catalog(listing(ListedTool("w", "Weather", schema), "x", tools=rules))
    assert found.listed("s") == (ListedTool("w", "Weather", schema),)
    assert found.functions()[0].parameters == {"type": "object", "properties": {"place": {}}}


def test_an_operators_shape_and_secrecy_are_its_owners() -> None:
    rules = {"search": ToolRule(shape="web_search_call"), "odd": ToolRule(shape="nonsense")}
    found = catalog(listing("search", "odd", tools=rules, internal=True))
    assert found.offered["search"].owner.shape == "web_search"
    assert found.offered["odd"].owner.shape == "mcp"
    assert found.offered["search"].owner.hidden


def test_a_builtin_tool_has_its_own_function() -> None:
    function = Tool("web_search", "Searches.", {"type": "object"})
    asked = AskedBuiltin("web_search", "web_search_preview")
    one = BuiltinListing(asked, "engine", spec(), "tavily", function)
    found = build_catalog([listing("web_search")], [one], (), searched=False)
    assert set(found.offered) == {"web_search", "s__web_search"}
    assert found.offered["web_search"].owner == ToolOwner("engine", "tavily", "web_search")
    assert [tool.name for tool in found.listed("s")] == ["web_search"]


def test_a_history_has_the_names_of_today() -> None:
    mine = ToolCall("c1", "read", "{}", ToolOwner("s", "read"))
    gone = ToolCall("c2", "old", "{}", ToolOwner("s", "old"))
    theirs = ToolCall("c3", "read", "{}")
    blocks = (TurnBlock("call", "{}", "read", "c1"), TurnBlock("call", "{}", "read", "c3"))
    turns = (Turn("user", "hi"), Turn("assistant", None, calls=(mine, gone, theirs), blocks=blocks))
    renamed = catalog(listing("read"), taken=("read",)).renamed(turns)
    assert renamed[0] is turns[0]
    assert [call.name for call in renamed[1].calls] == ["s__read", "old", "read"]
    assert [block.name for block in renamed[1].blocks] == ["s__read", "read"]


def test_a_builtin_tool_of_a_history_is_known_by_its_shape() -> None:
    rules = {"search": ToolRule(shape="web_search")}
    found = catalog(listing("search", "read", tools=rules))
    assert found.name_of(ToolOwner("", "web_search", "web_search")) == "search"
    assert found.name_of(ToolOwner("", "file_search", "file_search")) is None
    assert found.name_of(ToolOwner("", "read")) is None


def test_what_is_excluded_is_withheld_whatever_else_is_said() -> None:
    asked = AskedServer("s", tools=ToolFilter(("read", "write")), excluded=("write",))
    found = catalog(listing("read", "write", asked=asked))
    assert list(found.offered) == ["read"]
    assert "write" in found.withheld


def test_all_are_deferred_but_those_that_are_loaded() -> None:
    rules = {"add": ToolRule(defer=True)}
    asked = AskedServer("s", deferred=True, loaded_tools=("read", "add"))
    found = catalog(listing("read", "write", "add", asked=asked, tools=rules), searched=True)
    assert {tool.owner.tool for tool in found.deferred()} == {"write", "add"}


def test_a_listing_is_in_the_order_of_the_servers_names() -> None:
    rules = {"echo": ToolRule(alias="zebra")}
    found = catalog(listing("write", "echo", tools=rules))
    assert [tool.name for tool in found.listed("s")] == ["echo", "write"]
    assert [tool.name for tool in found.functions()] == ["write", "zebra"]
