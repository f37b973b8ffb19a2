"""Bodies that ask for tools on this node's side: what is read, who may ask, and what is refused."""

from typing import Any, get_args, get_type_hints

import pytest
from anthropic.types.beta import BetaMCPToolsetParam, BetaRequestMCPServerURLDefinitionParam
from anthropic.types.beta.beta_tool_union_param import BetaToolUnionParam

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    AskedServer,
    ListedTool,
    ToolFilter,
    ToolServing,
)
from smg_node.dialects.dialect import Unknown
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

READER = MessagesReader(ReaderOptions(tool_servers=True), ThoughtSeals(PlainVault()))
WITHOUT = MessagesReader(ReaderOptions(), ThoughtSeals(PlainVault()))
NEW = {"anthropic-beta": "other-1,mcp-client-2025-11-20"}
NEWER = {"anthropic-beta": "mcp-client-2026-09-15"}
OLD = {"anthropic-beta": "mcp-client-2025-04-04"}
SWITCHED = {"x-smg-mcp": "Enabled"}
Fields = dict[str, Any]


class Somebody(Unknown):
    """A caller with these headers."""

    tenant = "t"

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers


def server(name: str = "docs", **more: Any) -> Fields:
    return {"type": "url", "name": name, "url": f"https://{name}.test/mcp", **more}


def toolset(name: str = "docs", **more: Any) -> Fields:
    return {"type": "mcp_toolset", "mcp_server_name": name, **more}


def read(
    *, headers: dict[str, str] = NEW, reader: MessagesReader = READER, **more: Any
) -> GenerateRequest:
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
        **more,
    }
    return reader.read(body, Somebody(headers)).request


def asked(**more: Any) -> ToolServing:
    serving = read(**more).serving
    assert serving is not None
    return serving


def refusal(**more: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        read(**more)
    return caught.value


def only(serving: ToolServing) -> AskedServer:
    (found,) = serving.servers
    return found


def test_a_server_and_its_toolset_are_what_is_asked() -> None:
    serving = asked(mcp_servers=[server(authorization_token="sk-1")], tools=[toolset()])
    assert serving.servers == (
        AskedServer("docs", "https://docs.test/mcp", authorization="sk-1", where="tools[0]"),
    )
    assert not serving.approvals
    assert serving.headers == NEW
    secret = {**NEW, "authorization": "Bearer sk-2", "x-api-key": "sk-2", "x-team": "a"}
    told = asked(headers=secret, mcp_servers=[server()], tools=[toolset()]).headers
    assert told == {**NEW, "x-team": "a"}
    assert "sk-1" not in repr(serving)
    by_query = server(url="https://docs.test/mcp?key=sk-3")
    assert "sk-3" not in repr(asked(mcp_servers=[by_query], tools=[toolset()]))


@pytest.mark.parametrize("keys", [("tools", "mcp_servers"), ("mcp_servers", "tools")])
def test_the_order_of_the_keys_does_not_matter(keys: tuple[str, str]) -> None:
    body = {"tools": [toolset()], "mcp_servers": [server()]}
    assert only(asked(**{key: body[key] for key in keys})).label == "docs"


def test_a_server_without_a_url_is_one_that_the_operator_defined() -> None:
    found = only(asked(mcp_servers=[{"type": "url", "name": "docs"}], tools=[toolset()]))
    assert (found.url, found.definition) == ("", "docs")


def test_a_request_without_such_tools_asks_for_none() -> None:
    function = {"name": "f", "input_schema": {"type": "object"}}
    assert read(tools=[function]).serving is None
    assert read(mcp_servers=[], tools=[function]).serving is None


class Looked:
    """A truth that counts how often it was looked at."""

    times = 0

    def __bool__(self) -> bool:
        self.times += 1
        return True


def test_a_request_without_such_tools_does_not_ask_whether_there_are_any() -> None:
    looked = Looked()
    reader = MessagesReader(ReaderOptions(tool_servers=looked), ThoughtSeals(PlainVault()))
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("f", "g")]
    said = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    ]
    assert read(reader=reader, tools=tools, messages=said).serving is None
    assert not looked.times
    read(reader=reader, mcp_servers=[server()], tools=[toolset()])
    assert looked.times


@pytest.mark.parametrize("headers", [NEW, NEWER, SWITCHED])
def test_any_of_these_headers_lets_a_request_ask(headers: dict[str, str]) -> None:
    assert only(asked(headers=headers, mcp_servers=[server()], tools=[toolset()])).label == "docs"


@pytest.mark.parametrize(
    "headers", [{}, {"anthropic-beta": "mcp-client-2099-01-01"}, {"x-smg-mcp": "no"}]
)
def test_without_a_header_the_refusal_names_it(headers: dict[str, str]) -> None:
    error = refusal(headers=headers, mcp_servers=[server()], tools=[])
    assert (error.where, error.code) == ("mcp_servers", "unsupported_tool")
    assert "anthropic-beta: mcp-client-2025-11-20" in str(error)
    assert "x-smg-mcp: enabled" in str(error)
    assert refusal(headers=headers, tools=[toolset()]).where == "tools[0].type"


def test_a_node_that_runs_no_tools_refuses_them_as_ever() -> None:
    error = refusal(reader=WITHOUT, mcp_servers=[server()])
    assert (error.where, error.code) == ("mcp_servers", "unsupported_tool")
    assert "are not served here" in str(error)
    tool = {"type": "web_search_20250305", "name": "web_search"}
    assert "are not executed here" in str(refusal(reader=WITHOUT, tools=[tool]))
    assert "are not executed here" in str(refusal(reader=WITHOUT, tools=[toolset()]))
    block = {"type": "mcp_tool_use", "id": "a", "name": "f", "server_name": "docs", "input": {}}
    said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": [block]}]
    assert refusal(reader=WITHOUT, messages=said).code == "unsupported_block"


# ── Which tools of a server ──────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, {}),
        ({"configs": {"a": {"enabled": False}, "b": {}}}, {"excluded": ("a",)}),
        (
            {"default_config": {"enabled": False}, "configs": {"a": {"enabled": True}, "b": {}}},
            {"tools": ToolFilter(("a",))},
        ),
        ({"configs": {"a": {"defer_loading": True}}}, {"deferred_tools": ("a",)}),
        (
            {"default_config": {"defer_loading": True}, "configs": {"a": {"defer_loading": False}}},
            {"deferred": True, "loaded_tools": ("a",)},
        ),
        (
            {
                "tools": [
                    {"name": "a", "description": None, "input_schema": {"type": "object"}},
                    {"name": "b", "description": "B", "input_schema": {}},
                ]
            },
            {"pinned": (ListedTool("a", "", {"type": "object"}), ListedTool("b", "B"))},
        ),
    ],
)
def test_a_toolset_says_which_tools_are_wanted(wanted: Fields, expected: Fields) -> None:
    found = only(asked(mcp_servers=[server()], tools=[toolset(**wanted)]))
    expected_server = AskedServer("docs", "https://docs.test/mcp", where="tools[0]", **expected)
    assert found == expected_server


def test_a_toolset_without_any_tool_asks_for_nothing() -> None:
    serving = asked(mcp_servers=[server()], tools=[toolset(default_config={"enabled": False})])
    assert serving.servers == ()


def test_old_clients_say_it_at_the_server() -> None:
    servers = [
        server("a"),
        server("b", tool_configuration={"allowed_tools": ["x", "x", "y"]}),
        server("c", tool_configuration={"enabled": False}),
    ]
    found = asked(headers=OLD, mcp_servers=servers).servers
    assert [(one.label, one.tools) for one in found] == [
        ("a", None),
        ("b", ToolFilter(("x", "y"))),
    ]


# ── Server tools ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "max_uses": 3,
                "allowed_domains": ["a.test"],
                "user_location": {"type": "approximate", "city": "Ulm"},
                "cache_control": {"type": "ephemeral"},
            },
            AskedBuiltin(
                "web_search",
                "web_search_20250305",
                {
                    "allowed_domains": ["a.test"],
                    "user_location": {"type": "approximate", "city": "Ulm"},
                },
                3,
                where="tools[0]",
            ),
        ),
        (
            {"type": "web_search_20991231", "name": "web_search"},
            AskedBuiltin("web_search", "web_search_20991231", where="tools[0]"),
        ),
        (
            {"type": "web_fetch_20250910", "name": "web_fetch", "max_content_tokens": 10},
            AskedBuiltin(
                "web_fetch", "web_fetch_20250910", {"max_content_tokens": 10}, where="tools[0]"
            ),
        ),
        (
            {"type": "code_execution_20250825", "name": "code_execution"},
            AskedBuiltin("code_interpreter", "code_execution_20250825", where="tools[0]"),
        ),
        (
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            AskedBuiltin("tool_search", "tool_search_tool_regex_20251119", where="tools[0]"),
        ),
        (
            {"type": "tool_search_tool_bm25", "name": "tool_search_tool_bm25"},
            AskedBuiltin("tool_search", "tool_search_tool_bm25", where="tools[0]"),
        ),
    ],
)
def test_a_server_tool_is_a_built_in_one_with_its_settings(
    tool: Fields, expected: AskedBuiltin
) -> None:
    assert asked(headers={}, tools=[tool]).builtins == (expected,)


# ── What is wrong ────────────────────────────────────────────────────────────

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"mcp_servers": [server()]}, "mcp_servers[0].name"),
        ({"mcp_servers": [server(), server()], "tools": [toolset()]}, "mcp_servers[1].name"),
        ({"mcp_servers": [server("a b")]}, "mcp_servers[0].name"),
        ({"mcp_servers": [{"name": "a", "type": "stdio"}]}, "mcp_servers[0].type"),
        ({"mcp_servers": [{"name": "a"}]}, "mcp_servers[0].type"),
        ({"mcp_servers": [server(url="ftp://a")], "tools": [toolset()]}, "mcp_servers[0].url"),
        ({"mcp_servers": [server(url="x" * 3000)], "tools": [toolset()]}, "mcp_servers[0].url"),
        (
            {"mcp_servers": [server(authorization_token="a\nb")], "tools": [toolset()]},
            "mcp_servers[0].authorization_token",
        ),
        (
            {"mcp_servers": [server(tool_configuration={})], "tools": [toolset()]},
            "mcp_servers[0].tool_configuration",
        ),
        ({"mcp_servers": [server(str(n)) for n in range(65)]}, "mcp_servers"),
        ({"mcp_servers": ["docs"]}, "mcp_servers[0]"),
        ({"tools": [toolset()]}, "tools[0].mcp_server_name"),
        (
            {"mcp_servers": [server()], "tools": [toolset(), toolset()]},
            "tools[1].mcp_server_name",
        ),
        (
            {"mcp_servers": [server()], "tools": [toolset(configs={"a": {"enabled": 1}})]},
            "tools[0].configs.a.enabled",
        ),
        (
            {"mcp_servers": [server()], "tools": [toolset(tools=[{"name": "a"}])]},
            "tools[0].tools[0].input_schema",
        ),
        (
            {
                "mcp_servers": [server()],
                "tools": [toolset(tools=[{"name": "a", "input_schema": {}}] * 2)],
            },
            "tools[0].tools[1].name",
        ),
        ({"tools": [SEARCH, SEARCH]}, "tools[1].name"),
        ({"tools": [SEARCH, {"name": "web_search", "input_schema": {}}]}, "tools[1].name"),
        ({"tools": [{"name": "web_search", "input_schema": {}}, SEARCH]}, "tools[1].name"),
        ({"tools": [{**SEARCH, "name": "search"}]}, "tools[0].name"),
        ({"tools": [{**SEARCH, "max_uses": 0}]}, "tools[0].max_uses"),
        (
            {"tools": [{**SEARCH, "allowed_domains": ["a"], "blocked_domains": ["b"]}]},
            "tools[0].blocked_domains",
        ),
        ({"tools": [{**SEARCH, "allowed_domains": [""]}]}, "tools[0].allowed_domains[0]"),
        ({"tools": [{**SEARCH, "allowed_domains": [" "]}]}, "tools[0].allowed_domains[0]"),
        ({"tools": [{**SEARCH, "blocked_domains": ["a"] * 501}]}, "tools[0].blocked_domains"),
        ({"tools": [{**SEARCH, "user_location": {}}]}, "tools[0].user_location.type"),
        (
            {"tools": [{**SEARCH, "allowed_callers": ["code_execution_20250825"]}]},
            "tools[0].allowed_callers",
        ),
        ({"tools": [{"type": "web_search_soon", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "advisor_20260301", "name": "advisor"}]}, "tools[0].type"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(body: Fields, where: str) -> None:
    error = refusal(**body)
    assert error.where == where
    assert "sk-" not in str(error)


def test_a_token_is_not_in_what_is_said_of_it() -> None:
    secret = "s3cret" + "\x7f"
    error = refusal(mcp_servers=[server(authorization_token=secret)], tools=[toolset()])
    assert "s3cret" not in str(error)
    long = "s3cret" * 2_000
    error = refusal(mcp_servers=[server(authorization_token=long)], tools=[toolset()])
    assert "s3cret" not in str(error)


def kinds_of_the_official_client() -> list[tuple[str, str, list[str]]]:
    """Return type, name and keys of each tool that Anthropic's servers run."""
    run = ("web_", "code_execution", "tool_search")
    return [
        (kind, get_args(hints["name"])[0], sorted(hints))
        for hints in map(get_type_hints, get_args(BetaToolUnionParam))
        for kind in get_args(hints["type"])
        if type(kind) is str and kind.startswith(run)
    ]


@pytest.mark.parametrize(("kind", "name", "keys"), kinds_of_the_official_client())
def test_every_server_tool_of_the_official_client_is_known(
    kind: str, name: str, keys: list[str]
) -> None:
    values: Fields = {
        "allowed_callers": ["direct"],
        "cache_control": {"type": "ephemeral"},
        "citations": {"enabled": False},
        "max_content_tokens": 5,
        "max_uses": 5,
        "response_inclusion": "full",
        "url_sources": {},
        "user_location": {"type": "approximate"},
    }
    tool = {key: values.get(key, False) for key in keys if not key.endswith("_domains")}
    request = read(headers={}, tools=[{**tool, "type": kind, "name": name}])
    assert request.ignored == ()
    assert request.serving is not None
    (found,) = request.serving.builtins
    assert found.spelled == kind


def test_every_key_of_servers_and_toolsets_of_the_official_client_is_known() -> None:
    values: Fields = {"type": "url", "name": "docs", "url": "https://docs.test"}
    known = set(get_type_hints(BetaRequestMCPServerURLDefinitionParam)) - {"tool_configuration"}
    servers = {key: values.get(key, "x") for key in known}
    values = {"type": "mcp_toolset", "mcp_server_name": "docs", "tools": []}
    values["cache_control"] = {"type": "ephemeral"}
    tools = {key: values.get(key, {}) for key in get_type_hints(BetaMCPToolsetParam)}
    request = read(mcp_servers=[servers], tools=[tools])
    assert request.ignored == ()
    assert request.serving is not None
    assert only(request.serving).pinned == ()
