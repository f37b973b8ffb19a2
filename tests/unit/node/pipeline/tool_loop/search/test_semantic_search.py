"""Semantic search: vectors asked once, kept within bounds, and never a failure of a search."""

import asyncio
from array import array
from collections.abc import Sequence
from random import Random

import pytest
from msgspec.structs import replace

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.tool_serving import ListedTool
from smg_node.core.ids import IdSource
from smg_node.core.request_context import RequestContext
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.pipeline.tool_loop.search import semantic_search
from smg_node.pipeline.tool_loop.search.semantic_search import SemanticSearch
from smg_node.system_clock import SystemClock
from support.mcp.loop_world import CONTEXT

MEANINGS = {"sea": 0, "tide": 0, "ocean": 0, "mail": 1, "letter": 1, "money": 2}
TOOLS = [
    SearchedTool("get_tide", ListedTool("get_tide", "When the sea is high."), "w"),
    SearchedTool("post", ListedTool("post", "Sends a letter."), "w"),
    SearchedTool("pay", ListedTool("pay", "Moves money."), "w"),
]


class Embedding:
    """A model that knows what some words are about."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.contexts: list[RequestContext] = []
        self.error: SmgError | None = None
        self.characters_max = 1_000_000
        self.pause_s = 0.0
        self.dimensions = 3

    async def __call__(
        self, model: str, texts: Sequence[str], context: RequestContext
    ) -> "list[array[float]]":
        await asyncio.sleep(self.pause_s)
        if self.error is not None:
            raise self.error
        longest = max(map(len, texts))
        if longest > self.characters_max:
            raise prompt_too_long(longest, self.characters_max, "input")
        self.texts += texts
        self.contexts.append(context)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> "array[float]":
        found = array("f", [0.001] * self.dimensions)
        for word, about in MEANINGS.items():
            if word in text.lower():
                found[about] += 1
        return found


def search(model: Embedding) -> SemanticSearch:
    clock = SystemClock()
    return SemanticSearch(model, IdSource(clock, Random(1)), clock)


async def names(one: SemanticSearch, query: str, tools: Sequence[SearchedTool] = TOOLS) -> object:
    found = await one.ranked("embed", query, tools, CONTEXT, 2)
    return found if isinstance(found, str) else [tool.called for tool in found]


async def test_tools_are_found_by_what_they_mean() -> None:
    one = search(Embedding())
    found = await names(one, "the ocean")
    assert isinstance(found, list)
    assert found[0] == "get_tide"


async def test_a_tool_is_embedded_once_and_again_when_its_text_changes() -> None:
    model = Embedding()
    one = search(model)
    await names(one, "ocean")
    assert len(model.texts) == 4
    await names(one, "mail")
    assert model.texts[4:] == ["mail"]
    changed = [replace(TOOLS[0], tool=replace(TOOLS[0].tool, description="Is told to pay."))]
    await names(one, "mail", [*changed, *TOOLS[1:]])
    assert model.texts[5:] == ["mail", "get_tide: Is told to pay.\n"]


async def test_tools_are_the_nodes_own_request_and_a_question_is_its_callers() -> None:
    model = Embedding()
    await names(search(model), "ocean")
    question, tools = model.contexts
    assert (question.tenant, question.goes_on) == ("acme", True)
    assert (tools.tenant, tools.key_id, tools.goes_on) == ("", "", False)
    assert tools.deadline_s < CONTEXT.deadline_s


async def test_two_searches_at_once_ask_for_the_vectors_once() -> None:
    model = Embedding()
    model.pause_s = 0.02
    one = search(model)
    async with asyncio.TaskGroup() as group:
        for query in ("ocean", "mail", "money"):
            group.create_task(names(one, query))
    assert len(model.texts) == 3 + len(TOOLS)


async def test_a_model_that_is_away_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    model = Embedding()
    one = search(model)
    model.error = SmgError(ErrorKind.NOT_FOUND, "no such model", code="model_not_found")
    assert await names(one, "ocean") == "away"
    assert await names(one, "ocean") == "away"
    model.error = None
    assert await names(one, "ocean") == ["get_tide", "post"]
    model.error = SmgError(ErrorKind.OVERLOADED, "all are busy")
    assert await names(one, "ocean") == "away"
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("tools are found by their words: mcp.search_model embed")


async def test_what_came_in_time_is_kept_for_the_next_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(semantic_search, "WAIT_S", 0.25)
    many = [SearchedTool(f"t{n}", ListedTool(f"t{n}", f"Number {n}.")) for n in range(200)]
    model = Embedding()
    model.pause_s = 0.1
    one = search(model)
    assert await names(one, "ocean", many) == "long"
    assert 64 < len(model.texts) < 200
    model.pause_s = 0.0
    before = len(model.texts)
    assert await names(one, "ocean", many) != "long"
    assert len(model.texts) == 201 + 1
    assert len(model.texts) - before < 200


async def test_texts_are_cut_to_what_a_model_takes() -> None:
    model = Embedding()
    model.characters_max = 600
    long = [*TOOLS, SearchedTool("x", ListedTool("x", "a letter " * 500))]
    one = search(model)
    found = await names(one, "mail " * 200, long)
    assert isinstance(found, list)
    assert sorted(found) == ["post", "x"]
    assert max(map(len, model.texts)) == 500
    model.characters_max = 50
    assert await names(one, "ocean " * 20, [*long, SearchedTool("y", ListedTool("y"))]) == "away"


async def test_there_may_be_too_many_tools_and_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedding()
    one = search(model)
    monkeypatch.setattr(semantic_search, "TOOLS_MAX", 2)
    assert await names(one, "ocean") == "many"
    assert not model.texts
    monkeypatch.setattr(semantic_search, "VECTORS_BYTES_MAX", 300)
    for tool in TOOLS:
        assert await names(one, "ocean", [tool]) == [tool.called]
        assert one.vectors_bytes <= 300


async def test_a_model_that_gives_other_vectors_than_before_finds_what_fits_them() -> None:
    model = Embedding()
    one = search(model)
    await names(one, "ocean", TOOLS[:2])
    model.dimensions = 5
    assert await names(one, "ocean") == ["pay"]
    assert await names(one, "") == ["pay"]
