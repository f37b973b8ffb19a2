"""Tools of a Responses body that this node runs: every field, every spelling, and each mistake at its path."""

from typing import Any

import pytest
from hypothesis import given, settings
from openai.types.responses import Response

from smg_node.core.errors import SmgError
from smg_node.core.generation.tool_serving import (
    ApprovalRule,
    AskedBuiltin,
    ToolFilter,
    ToolServing,
)
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.generate_request import generate_request
from support.answers.responses import ask_of, json_values, teller_of

SERVED = ReaderOptions(tool_servers=True)
CLOCK: dict[str, Any] = {
    "type": "mcp",
    "server_label": "clock",
    "server_url": "https://clock.example/mcp",
    "authorization": "s3cret",
    "headers": {"X-Tenant": "t1"},
    "allowed_tools": ["times", "zones", "times"],
    "require_approval": "never",
    "server_description": "tells the time",
    "defer_loading": True,
}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def serving_of(*tools: Any, **more: Any) -> ToolServing:
    serving = ask_of(SERVED, tools=list(tools), **more).serving
    assert serving is not None
    return serving


def mistake(*tools: Any, **more: Any) -> SmgError:
    with pytest.raises(SmgError) as found:
        ask_of(SERVED, tools=list(tools), **more)
    return found.value


def test_a_server_is_read_with_all_that_is_said_of_it() -> None:
    [server] = serving_of(CLOCK).servers
    assert (server.label, server.url, server.definition) == ("clock", CLOCK["server_url"], "")
    assert (server.authorization, server.headers) == ("s3cret", {"X-Tenant": "t1"})
    assert server.tools == ToolFilter(("times", "zones"))
    assert server.approval == ApprovalRule(otherwise="never")
    assert (server.description, server.deferred, server.where) == (
        "tells the time", True, "tools[0]",
    )  # fmt: skip


def test_a_server_without_a_url_is_a_definition() -> None:
    bare = serving_of({"type": "mcp", "server_label": "clock"}).servers[0]
    assert (bare.url, bare.definition, bare.approval) == ("", "", ApprovalRule())
    for key in ("connector_id", "tunnel_id"):
        [named] = serving_of({"type": "mcp", "server_label": "a", key: "mine"}).servers
        assert (named.url, named.definition) == ("", "mine")


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (None, ApprovalRule()),
        ("always", ApprovalRule()),
        ("never", ApprovalRule(otherwise="never")),
        ({}, ApprovalRule()),
        (
            {"never": {"tool_names": ["a"]}},
            ApprovalRule(never=ToolFilter(("a",)), otherwise="always"),
        ),
        (
            {"always": {"tool_names": ["a"], "read_only": False}},
            ApprovalRule(ToolFilter(("a",), read_only=False), otherwise="never"),
        ),
        (
            {"always": {"tool_names": ["a"]}, "never": {"read_only": True}},
            ApprovalRule(ToolFilter(("a",)), ToolFilter(read_only=True), "always"),
        ),
    ],
)
def test_what_needs_approval(said: Any, rule: ApprovalRule) -> None:
    [server] = serving_of({**CLOCK, "require_approval": said}).servers
    assert server.approval == rule


def test_allowed_tools_are_names_or_a_filter() -> None:
    for said, wanted in (
        ([], ToolFilter(())),
        ({"tool_names": ["a"], "read_only": True}, ToolFilter(("a",), read_only=True)),
        ({"read_only": True}, ToolFilter(None, read_only=True)),
        (None, None),
    ):
        [server] = serving_of({**CLOCK, "allowed_tools": said}).servers
        assert server.tools == wanted


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        ("web_search", "web_search"),
        ("web_search_2025_08_26", "web_search"),
        ("web_search_preview", "web_search"),
        ("web_search_preview_2025_03_11", "web_search"),
        ("file_search", "file_search"),
        ("code_interpreter", "code_interpreter"),
        ("image_generation", "image_generation"),
        ("tool_search", "tool_search"),
    ],
)
def test_a_built_in_tool_is_the_same_in_every_spelling(spelled: str, kind: Any) -> None:
    found = serving_of({"type": spelled, "filters": {"a": 1}})
    assert found.builtins == (AskedBuiltin(kind, spelled, {"filters": {"a": 1}}, where="tools[0]"),)
    assert ask_of(SERVED, tools=[{"type": spelled}]).ignored == ()


def test_what_other_parameters_say_is_in_it() -> None:
    found = serving_of(CLOCK, max_tool_calls=3, store=False)
    assert (found.calls_max, found.approvals, found.stored) == (3, True, False)
    assert serving_of(CLOCK).stored
    wish = generate_request(ask := ask_of(SERVED, tools=[CLOCK]), ask.items)
    assert wish.serving == ask.serving
    assert ask_of(SERVED, tools=[FUNCTION]).serving is None
    assert ask_of(SERVED).serving is None


def test_secrets_are_in_nothing_that_is_shown() -> None:
    ask = ask_of(SERVED, tools=[CLOCK])
    assert "s3cret" not in repr(ask)
    body = teller_of(ask).response()
    assert b"s3cret" not in body
    assert b"X-Tenant" not in body
    assert Response.model_validate_json(body, strict=True).tools[0].type == "mcp"
    items = [{"type": "additional_tools", "role": "developer", "tools": [CLOCK, FUNCTION]}]
    [item] = ask_of(SERVED, input=items).items
    assert b"s3cret" not in item.document
    assert [tool["type"] for tool in item.values()["tools"]] == ["mcp", "function"]


def test_without_servers_all_is_as_it_was() -> None:
    ask = ask_of(tools=[CLOCK, {"type": "web_search"}])
    assert ask.serving is None
    assert ask.ignored == ("tools[0].mcp", "tools[1].web_search")
    for choice in ("required", {"type": "mcp", "server_label": "clock"}):
        with pytest.raises(SmgError) as found:
            ask_of(tools=[CLOCK], tool_choice=choice)
        assert found.value.code == "unsupported_tool"


def test_what_no_server_does_is_left_out_beside_them() -> None:
    ask = ask_of(SERVED, tools=[CLOCK, {"type": "computer"}, {"type": "shell"}])
    assert ask.ignored == ("tools[1].computer", "tools[2].shell")
    client = {"type": "tool_search", "execution": "client"}
    assert ask_of(SERVED, tools=[client]).ignored == ("tools[0].tool_search",)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"server_label": None}, "tools[0].server_label"),
        ({"server_label": "a b"}, "tools[0].server_label"),
        ({"server_label": "x" * 65}, "tools[0].server_label"),
        ({"server_url": "ftp://a"}, "tools[0].server_url"),
        ({"server_url": "https://a/\nb"}, "tools[0].server_url"),
        ({"connector_id": "c"}, "tools[0].connector_id"),
        ({"authorization": "a\r\nb"}, "tools[0].authorization"),
        ({"authorization": ""}, "tools[0].authorization"),
        ({"headers": {"a b": "c"}}, "tools[0].headers"),
        ({"headers": {"a": 1}}, "tools[0].headers.a"),
        ({"headers": {"a": "x\n"}}, "tools[0].headers.a"),
        ({"headers": []}, "tools[0].headers"),
        ({"allowed_tools": "all"}, "tools[0].allowed_tools"),
        ({"allowed_tools": [1]}, "tools[0].allowed_tools[0]"),
        ({"allowed_tools": {"tool_names": "a"}}, "tools[0].allowed_tools.tool_names"),
        ({"require_approval": "sometimes"}, "tools[0].require_approval"),
        ({"require_approval": {"never": {"read_only": 1}}}, "tools[0].require_approval.never.read_only"),
        ({"server_description": "x" * 2_049}, "tools[0].server_description"),
        ({"defer_loading": "yes"}, "tools[0].defer_loading"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_at_its_path(changes: Any, where: str) -> None:
    error = mistake({**CLOCK, **changes})
    assert (error.status, error.where) == (400, where)
    assert "s3cret" not in error.message


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"filters": 5}, "tools[0].filters"),
        ({"filters": {"allowed_domains": "a.org"}}, "tools[0].filters.allowed_domains"),
        ({"filters": {"allowed_domains": [5]}}, "tools[0].filters.allowed_domains[0]"),
        ({"filters": {"allowed_domains": ["a.org", " "]}}, "tools[0].filters.allowed_domains[1]"),
        ({"filters": {"blocked_domains": ["a.org"] * 501}}, "tools[0].filters.blocked_domains"),
        ({"blocked_domains": {"a.org": True}}, "tools[0].blocked_domains"),
    ],
)
def test_domains_that_could_not_be_enforced_are_refused(changes: Any, where: str) -> None:
    error = mistake({"type": "web_search", **changes})
    assert (error.status, error.where) == (400, where)
    unsaid = serving_of({"type": "web_search", "filters": {"allowed_domains": None}})
    assert [one.kind for one in unsaid.builtins] == ["web_search"]


def test_of_two_with_one_name_the_second_is_named() -> None:
    assert mistake(CLOCK, CLOCK).where == "tools[1].server_label"
    both = mistake({"type": "web_search"}, {"type": "web_search_preview"})
    assert (both.where, "'web_search'" in both.message) == ("tools[1].type", True)


def test_functions_are_deferred_where_the_model_can_search() -> None:
    late = {**FUNCTION, "defer_loading": True}
    found = ask_of(SERVED, tools=[late, {"type": "tool_search"}])
    assert ([tool.deferred for tool in found.tools], found.ignored) == ([True], ())
    alone = ask_of(SERVED, tools=[late])
    assert ([tool.deferred for tool in alone.tools], alone.ignored) == (
        [False], ("tools[0].defer_loading",),
    )  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(json_values)
def test_any_value_anywhere_is_read_or_refused(value: Any) -> None:
    errors: list[SmgError] = []
    for key in (*CLOCK, "connector_id", "type"):
        try:
            ask_of(SERVED, tools=[{**CLOCK, key: value}])
        except SmgError as error:
            errors.append(error)
    for one in errors:
        assert (one.status, (one.where or "")[:8]) == (400, "tools[0]")
        assert "s3cret" not in one.message
