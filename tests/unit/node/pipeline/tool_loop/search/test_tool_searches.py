"""Tool searches: by words and by pattern, over servers' tools and the client's own."""

from typing import Any, cast

import msgspec
import pytest

from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    AskedServer,
    ListedTool,
    ToolServing,
)
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.mcp.tools.tool import Tool as ServerTool
from smg_node.pipeline.tool_loop.search.semantic_search import SemanticSearch, Unranked
from smg_node.pipeline.tool_loop.search.tool_searches import (
    KEPT_MAX,
    SearchOptions,
    ToolSearches,
)
from support.mcp.loop_world import CONTEXT, Model, Servers, calls, heard, request, said, speech

TOOLS = [
    SearchedTool("get_tide", ListedTool("get_tide", "When the sea is high."), "sea"),
    SearchedTool("sea__send_mail", ListedTool("send_mail", "Sends a letter."), "sea"),
    SearchedTool("mine", ListedTool("mine", "Counts letters.")),
]
WORDS = AskedBuiltin("tool_search", "tool_search")
PATTERN = AskedBuiltin("tool_search", "tool_search_tool_regex_20251119")


@pytest.mark.parametrize(
    ("asked", "arguments", "found"),
    [
        (WORDS, {"query": "high sea"}, "get_tide"),
        (WORDS, {"query": "mail"}, "sea__send_mail"),
        (PATTERN, {"pattern": "send_.*"}, "sea__send_mail"),
        (PATTERN, {"pattern": "^mine$"}, "mine"),
    ],
)
async def test_tools_are_found(asked: AskedBuiltin, arguments: object, found: str) -> None:
    search = ToolSearches()
    for _ in range(2):
        result = await search.search(asked, msgspec.json.encode(arguments).decode(), TOOLS, CONTEXT)
        assert [one.name for one in result.found][:1] == [found]
        assert f'"name":"{found}"' in result.text
        assert result.action == arguments


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        (PATTERN, '{"pattern":"("}'),
        (PATTERN, "nonsense"),
        (WORDS, '{"query":"zebra"}'),
        (WORDS, ""),
    ],
)
async def test_what_finds_nothing_says_so(asked: AskedBuiltin, arguments: str) -> None:
    result = await ToolSearches().search(asked, arguments, TOOLS, CONTEXT)
    assert result.found == ()
    assert result.text


async def test_few_indexes_are_kept() -> None:
    search = ToolSearches()
    for number in range(KEPT_MAX + 3):
        tools = [SearchedTool(f"t{number}", ListedTool(f"t{number}"))]
        result = await search.search(WORDS, f'{{"query":"t{number}"}}', tools, CONTEXT)
        assert [one.name for one in result.found] == [f"t{number}"]
    assert len(search._kept) == KEPT_MAX


async def test_a_model_finds_a_tool_and_calls_it() -> None:
    many = [ServerTool(f"tool_{number}", f"Does thing {number}.") for number in range(300)]
    servers = Servers({"w": [*many, ServerTool("get_tide", "When the sea is high.")]})
    model = Model(
        speech(calls("tool_search", '{"query":"high sea"}')),
        speech(calls("get_tide")),
        speech(said("at five")),
    )
    asked = ToolServing((AskedServer("w", deferred=True),), (WORDS,))
    listener = await heard(model, servers, request(asked), search=ToolSearches())
    assert [tool for _, tool, _ in servers.ran] == ["get_tide"]
    assert listener.results()[0].found[0].name == "get_tide"
    assert [tool.name for tool in model.prompt(0).tools if not tool.deferred] == ["tool_search"]


class Meaning:
    """A ranking by meaning that is what it is told to be; see `SemanticSearch.ranked`."""

    def __init__(self, ranking: list[SearchedTool] | Unranked) -> None:
        self.ranking = ranking
        self.asked: list[tuple[str, str, int]] = []

    async def ranked(
        self, model: str, query: str, tools: Any, context: Any, limit: int
    ) -> list[SearchedTool] | Unranked:
        self.asked.append((model, query, limit))
        return self.ranking[:limit] if isinstance(self.ranking, list) else self.ranking


@pytest.mark.parametrize(
    ("way", "ranking", "found", "outcome"),
    [
        ("bm25", TOOLS, ["sea__send_mail", "mine"], ("bm25", "ok")),
        ("embeddings", [TOOLS[2], TOOLS[0]], ["mine", "get_tide"], ("embeddings", "ok")),
        ("embeddings", [], [], ("embeddings", "ok")),
        ("hybrid", [TOOLS[2], TOOLS[0]], ["mine", "sea__send_mail", "get_tide"], ("hybrid", "ok")),
        ("hybrid", "away", ["sea__send_mail", "mine"], ("hybrid", "away")),
        ("embeddings", "long", ["sea__send_mail", "mine"], ("embeddings", "long")),
        ("embeddings", "many", ["sea__send_mail", "mine"], ("embeddings", "many")),
    ],
)
async def test_words_are_searched_for_in_the_way_that_is_set(
    way: Any, ranking: Any, found: list[str], outcome: tuple[str, str]
) -> None:
    meaning, counted = Meaning(ranking), list[tuple[str, str]]()
    search = ToolSearches(
        lambda: SearchOptions(way, "embed"),
        lambda: cast("SemanticSearch", meaning),
        lambda *said: counted.append(said),
    )
    result = await search.search(WORDS, '{"query":"a letter to send"}', TOOLS, CONTEXT)
    assert [one.name for one in result.found] == found
    assert counted == [outcome]
    assert [one[:2] for one in meaning.asked] == (
        [] if way == "bm25" else [("embed", "a letter to send")]
    )


async def test_a_pattern_and_a_way_without_a_model_ask_no_model() -> None:
    meaning = Meaning("away")
    named = ToolSearches(
        lambda: SearchOptions("hybrid", "embed"), lambda: cast("SemanticSearch", meaning)
    )
    await named.search(PATTERN, '{"pattern":"send"}', TOOLS, CONTEXT)
    await named.search(WORDS, "{}", TOOLS, CONTEXT)
    unnamed = ToolSearches(lambda: SearchOptions("hybrid"), lambda: cast("SemanticSearch", meaning))
    await unnamed.search(WORDS, '{"query":"letter"}', TOOLS, CONTEXT)
    assert not meaning.asked
