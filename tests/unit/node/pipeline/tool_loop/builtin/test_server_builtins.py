"""Server built-ins in a loop: numbered results, their settings, and citations in what the model writes."""

import msgspec

from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.tool_serving import AskedBuiltin, ToolServing
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool import Tool as ServerTool
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.builtin.server_builtins import ServerBuiltins
from support.mcp.loop_world import Model, Servers, calls, heard, request, said, speech

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "allowed_domains": {"type": "array"}},
    "additionalProperties": False,
}


async def finds(tool: str, arguments: str, options: CallOptions) -> CallResult:
    query = msgspec.json.decode(arguments)["query"]
    rows = [
        {"url": f"https://sea.test/{query}", "title": query, "snippet": "High at five."},
        {"url": "https://other.test/x", "title": "x", "snippet": "no"},
    ]
    return CallResult((), msgspec.json.encode({"results": rows}))


async def test_results_are_numbered_and_cited() -> None:
    model = Model(
        speech(calls("web_search", '{"query":"tides"}')),
        speech(calls("web_search", '{"query":"moon"}')),
        speech(said("High at five [1], full moon [2].")),
    )
    servers = Servers(
        {"engine": [ServerTool("tavily", "", SCHEMA)]},
        finds,
        builtins={"web_search": ("engine", "tavily")},
    )
    settings = {"filters": {"allowed_domains": ["sea.test"]}, "search_context_size": "low"}
    asked = ToolServing((), (AskedBuiltin("web_search", "web_search", settings),))
    listener = await heard(model, servers, request(asked), builtins=ServerBuiltins())
    sent = [msgspec.json.decode(arguments) for _, _, arguments in servers.ran]
    assert sent[0] == {"query": "tides", "allowed_domains": ["sea.test"]}
    first, second = model.results(2)
    assert first.startswith("[1] tides https://sea.test/tides")
    assert second.startswith("[2] moon https://sea.test/moon")
    assert [len(one.sources) for one in listener.results()] == [1, 1]
    cited = listener.of(BlockEnd)[-1].annotations
    assert [(one["url"], one["start_index"]) for one in cited] == [
        ("https://sea.test/tides", 13),
        ("https://sea.test/moon", 28),
    ]


async def test_a_kind_that_nothing_is_known_of_is_not_offered() -> None:
    builtins = ServerBuiltins()
    assert builtins.offered(AskedBuiltin("tool_search", "tool_search")) is None
    assert builtins.offered(AskedBuiltin("file_search", "file_search")) is not None
