"""Built-in tools in a loop: a function of their own, their settings, numbered sources, and a search among tools."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from smg_node.core.generation.events import BlockEnd, BlockStart
from smg_node.core.generation.request import Tool
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    AskedServer,
    ListedTool,
    RunResult,
    Source,
    ToolServing,
)
from smg_node.core.request_context import RequestContext
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.mcp.server_spec import ToolRule
from smg_node.mcp.tools.tool import Tool as ServerTool
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.run_results import result_of
from support.mcp.loop_world import (
    CONTEXT,
    Model,
    Servers,
    calls,
    heard,
    loop,
    request,
    said,
    speech,
)

SCHEMA = {"type": "object", "properties": {"query": {}, "days": {}}}
TOOLS: dict[str, list[Any]] = {
    "engine": [ServerTool("tavily", "", SCHEMA)],
    "w": ["tides", "weather"],
}
PLACES: Any = {"web_search": ("engine", "tavily"), "file_search": ("engine", "tavily")}


class Plain:
    """Built-in tools as plain as can be."""

    def __init__(self) -> None:
        self.schemas: list[Any] = []
        self.kept: list[str] = []
        """Texts of sources that are kept for citations."""

    def offered(self, asked: AskedBuiltin) -> Tool:
        return Tool(asked.kind, f"does {asked.spelled}")

    def arguments(
        self, kind: Any, settings: Mapping[str, Any], arguments: str, schema: Any
    ) -> str | Failure:
        self.schemas.append(schema)
        if not arguments.startswith("{"):
            return Failure(FailureKind.PROTOCOL, -32602, "no object", sent=False)
        return msgspec.json.encode({**msgspec.json.decode(arguments), **settings}).decode()

    def read(
        self,
        kind: Any,
        settings: Mapping[str, Any],
        arguments: str,
        outcome: CallResult | Failure,
        *,
        first: int,
        bytes_max: int,
    ) -> RunResult:
        if isinstance(outcome, Failure):
            return result_of(outcome, bytes_max=bytes_max)
        url = f"http://{first}.test"
        found = Source(url, text="a long page")
        return RunResult(f"[{first}] {url}", action={"query": arguments}, sources=(found,))

    def annotations(self, text: str, sources: Sequence[Source]) -> tuple[Mapping[str, Any], ...]:
        self.kept += [one.text for one in sources]
        return tuple({"url": one.url} for n, one in enumerate(sources, 1) if f"[{n}]" in text)


class Finder:
    """A search that finds what is named."""

    def offered(self, asked: AskedBuiltin) -> Tool:
        return Tool("tool_search")

    async def search(
        self,
        asked: AskedBuiltin,
        arguments: str,
        tools: Sequence[SearchedTool],
        context: RequestContext,
    ) -> RunResult:
        query = msgspec.json.decode(arguments)["query"]
        found = tuple(
            msgspec.structs.replace(one.tool, name=one.called)
            for one in tools
            if query in one.tool.name
        )
        return RunResult(f"found {len(found)} of {len(tools)}", found=found)


def web(**fields: Any) -> AskedBuiltin:
    return AskedBuiltin("web_search", "web_search_preview", **fields)


def servers() -> Servers:
    return Servers(TOOLS, builtins=PLACES)


async def test_a_builtin_tool_is_offered_as_its_own_function_with_its_settings() -> None:
    model = Model(speech(calls("web_search", '{"query":"tides"}')), speech(said("high [1].")))
    ours, builtins = servers(), Plain()
    asked = ToolServing((), (web(settings={"days": 3, "query": "mine"}),))
    listener = await heard(model, ours, request(asked), builtins=builtins)
    assert [tool.name for tool in model.prompt(0).tools] == ["web_search"]
    ((_, tool, arguments),) = ours.ran
    assert tool == "tavily"
    assert msgspec.json.decode(arguments) == {"query": "mine", "days": 3}
    assert builtins.schemas == [SCHEMA]
    owner = listener.of(BlockStart)[0].owner
    assert (owner.server, owner.tool, owner.shape) == ("engine", "tavily", "web_search")
    (result,) = listener.results()
    # The action is the model's own; what was added is the request's.
    assert result.action == {"query": '{"query":"tides"}'}
    assert model.results(1) == ["[1] http://1.test"]
    assert listener.of(BlockEnd)[-1].annotations == ({"url": "http://1.test"},)


async def test_sources_are_numbered_over_the_whole_answer() -> None:
    model = Model(
        speech(calls("web_search", '{"n":1}'), calls("web_search", '{"n":2}', block=1)),
        speech(calls("web_search", '{"n":3}')),
        speech(said("as [3] says")),
    )
    builtins = Plain()
    listener = await heard(model, servers(), request(ToolServing((), (web(),))), builtins=builtins)
    assert [one.text for one in listener.results()] == [f"[{n}] http://{n}.test" for n in (1, 2, 3)]
    assert listener.of(BlockEnd)[-1].annotations == ({"url": "http://3.test"},)
    # Clients are shown the pages; for citations only addresses and titles are kept.
    assert [one.sources[0].text for one in listener.results()] == ["a long page"] * 3
    assert builtins.kept == [""] * 3


async def test_uses_beyond_the_most_are_refused_and_shown() -> None:
    several = [calls("web_search", f'{{"n":{n}}}', block=n) for n in range(3)]
    model = Model(speech(*several), speech(said("done")))
    ours = servers()
    asked = ToolServing((), (web(uses_max=2),))
    listener = await heard(model, ours, request(asked), builtins=Plain())
    assert len(ours.ran) == 2
    assert "max_uses_exceeded" in listener.results()[2].text


async def test_two_spellings_are_one_tool() -> None:
    twice = ToolServing((), (web(), AskedBuiltin("web_search", "web_search_2026_01_01")))
    model = Model(speech(said("done")))
    run = loop(model, servers(), builtins=Plain()).start("chat", request(twice), CONTEXT)
    await run.answer()
    assert run.ignored == ()
    assert [tool.name for tool in model.prompt(0).tools] == ["web_search"]


async def test_what_is_insisted_on_is_forced_once() -> None:
    model = Model(speech(calls("web_search", "{}")), speech(said("done")))
    asked = ToolServing((), (web(insisted=True),))
    await heard(model, servers(), request(asked), builtins=Plain())
    first, second = model.prompt(0).choice, model.prompt(1).choice
    assert (first.mode, first.name) == ("named", "web_search")
    assert (second.mode, second.name) == ("auto", "")


async def test_arguments_that_are_none_are_not_sent() -> None:
    model = Model(speech(calls("web_search", "nonsense")), speech(said("done")))
    ours = servers()
    listener = await heard(model, ours, request(ToolServing((), (web(),))), builtins=Plain())
    assert not ours.ran
    assert listener.results()[0].error is not None


async def test_without_the_part_that_reads_results_nothing_is_offered() -> None:
    model = Model(speech(said("done")))
    await heard(model, servers(), request(ToolServing((), (web(),))))
    assert model.prompt(0).tools == ()


async def test_a_tool_that_an_operator_shows_as_a_search_is_read_as_one() -> None:
    rules = {"tools": {"weather": ToolRule(shape="web_search_call")}}
    model = Model(speech(calls("weather")), speech(said("done")))
    ours = Servers(TOOLS, specs={"w": rules})
    asked = ToolServing((AskedServer("w"),))
    listener = await heard(model, ours, request(asked), builtins=Plain())
    assert listener.of(BlockStart)[0].owner.shape == "web_search"
    assert listener.results()[0].sources


async def test_deferred_tools_are_found_by_a_search_and_stay_out_of_the_list() -> None:
    model = Model(
        speech(calls("tool_search", '{"query":"tide"}')),
        speech(calls("tides")),
        speech(said("done")),
    )
    ours = servers()
    search = AskedBuiltin("tool_search", "tool_search")
    asked = ToolServing((AskedServer("w", deferred=True),), (search,))
    listener = await heard(model, ours, request(asked), search=Finder())
    assert [tool for _, tool, _ in ours.ran] == ["tides"]
    shown = {tool.name: tool.deferred for tool in model.prompt(0).tools}
    assert shown == {"tides": True, "weather": True, "tool_search": False}
    assert model.prompt(2).tools == model.prompt(0).tools
    assert [one.name for one in listener.results()[0].found] == ["tides"]
    told = model.prompt(1).turns[-1]
    assert (told.content, told.references) == ("found 1 of 2", ("tides",))


async def test_a_clients_own_deferred_functions_are_found_as_well() -> None:
    model = Model(speech(calls("tool_search", '{"query":"mine"}')), speech(said("done")))
    search = AskedBuiltin("tool_search", "tool_search")
    wish = request(ToolServing((), (search,)), tools=["mine"])
    prompt: Any = wish.prompts[0]
    hidden = msgspec.structs.replace(prompt, tools=(Tool("mine", "My own.", deferred=True),))
    wish = msgspec.structs.replace(wish, prompts=(hidden,))
    listener = await heard(model, None, wish, search=Finder())
    assert listener.results()[0].found == (ListedTool("mine", "My own."),)


async def test_nothing_is_deferred_where_nothing_searches() -> None:
    model = Model(speech(said("done")))
    asked = ToolServing((AskedServer("w", deferred=True),))
    await heard(model, servers(), request(asked), search=Finder())
    assert not any(tool.deferred for tool in model.prompt(0).tools)
