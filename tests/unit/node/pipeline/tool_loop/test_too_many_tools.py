"""Tools that are too many for a prompt: left out of it, searched for, and called all the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smg_node.core.generation.request import Tool, ToolChoice
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    AskedServer,
    ChosenTool,
    ListedTool,
    ServedChoice,
    ToolServing,
)
from smg_node.mcp.tools.tool import Tool as ServerTool
from smg_node.pipeline.tool_loop.ports import LoopOptions
from smg_node.pipeline.tool_loop.search.tool_searches import ToolSearches
from smg_node.pipeline.tool_loop.search.tool_tokens import BYTES_PER_TOKEN, KEPT_MAX, ToolTokens
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Servers,
    calls,
    heard,
    loop,
    request,
    said,
    serving,
    speech,
)

MANY = [ServerTool(f"tool_{number}", f"Does thing {number}.") for number in range(50)]
TIDE = ServerTool("get_tide", "When the sea is high.")
TWO: Mapping[str, Sequence[str | ServerTool]] = {"few": ["read"], "many": [*MANY, TIDE]}


class Counting:
    """Counts a text's words as tokens, of one model."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, model: str, text: str) -> int | None:
        self.asked += 1
        return len(text.split()) if model == "m" else None


def bounded(most: int) -> dict[str, Any]:
    return {
        "options": lambda: LoopOptions(defer_over_tokens=most),
        "search": ToolSearches(),
        "tokens": ToolTokens(Counting()),
    }


async def shown(most: int, asked: ToolServing, *, specs: Any = None, **more: Any) -> list[str]:
    """Return the tools that the first pass's prompt shows."""
    model = Model(speech(said("hm")))
    await heard(model, Servers(TWO, specs=specs), request(asked, **more), **bounded(most))
    return sorted(tool.name for tool in model.prompt(0).tools if not tool.deferred)


async def test_what_is_left_out_is_found_and_called() -> None:
    model = Model(
        speech(calls("tool_search", '{"query":"high sea"}')),
        speech(calls("get_tide")),
        speech(said("at five")),
    )
    servers = Servers(TWO)
    listener: Listener = await heard(
        model, servers, request(serving("few", "many"), tools=["mine"]), **bounded(100)
    )
    assert sorted(one.name for one in model.prompt(0).tools if not one.deferred) == [
        "mine",
        "tool_search",
    ]
    assert len(model.prompt(0).tools) == 1 + 1 + 1 + len(MANY) + 1
    assert servers.ran == [("many", "get_tide", "{}")]
    assert listener.text() == "at five"
    assert [tool.name for tool in listener.results()[0].found] == ["get_tide"]


@pytest.mark.parametrize("most", [0, 10_000])
async def test_few_tools_stay_where_they_are(most: int) -> None:
    assert len(await shown(most, serving("few", "many"))) == 2 + len(MANY)


async def test_a_server_whose_operator_does_not_want_it_stays() -> None:
    named = {"many": {"may_defer": False}}
    assert len(await shown(100, serving("few", "many"), specs=named)) == 1 + len(MANY) + 1
    none = {"few": {"may_defer": False}, **named}
    assert len(await shown(100, serving("few", "many"), specs=none)) == 2 + len(MANY)


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (ToolServing((AskedServer("many"),), choice=ServedChoice((ChosenTool("many"),))), {}),
        (serving("many"), {"choice": ToolChoice("auto", allowed=("tool_1",))}),
    ],
)
async def test_a_request_that_wants_some_of_them_only_is_shown_them(asked: Any, more: Any) -> None:
    assert "get_tide" in await shown(100, asked, **more)


async def test_a_request_that_searches_itself_says_what_is_left_out() -> None:
    search = (AskedBuiltin("tool_search", "tool_search"),)
    assert len(await shown(100, ToolServing((AskedServer("many"),), search))) == 2 + len(MANY)


async def test_lists_that_clients_keep_count_as_well() -> None:
    pinned = tuple(ListedTool(tool.name, tool.description) for tool in MANY)
    asked = ToolServing((AskedServer("many", pinned=pinned),))
    assert await shown(100, asked) == ["tool_search"]


async def test_whoever_counts_tokens_is_shown_the_same_prompt() -> None:
    generations = loop(Model(), Servers(TWO), **bounded(100))
    asked, whole = serving("many"), request(serving("many")).prompts[0]
    prompt: Any = await generations.shown_prompt("messages", whole, asked, CONTEXT, "m")  # type: ignore[arg-type]  # a chat
    assert [tool.name for tool in prompt.tools if not tool.deferred] == ["tool_search"]


async def test_tokens_are_the_models_own_or_four_bytes_and_are_counted_once() -> None:
    counting = Counting()
    tokens = ToolTokens(counting)
    tools = [Tool("t", "word " * 40)]
    assert await tokens.exceed(39, "m", tools)
    assert not await tokens.exceed(42, "m", tools)
    assert counting.asked == 1
    # Of a model that nobody here has the tokenizer of.
    length = len('[["t","' + "word " * 40 + '",null]]')
    assert await tokens.exceed(length // BYTES_PER_TOKEN - 1, "other", tools)
    assert not await tokens.exceed(length // BYTES_PER_TOKEN, "other", tools)
    assert counting.asked == 2
    # There are no more tokens than bytes.
    assert not await tokens.exceed(length, "third", tools)
    assert counting.asked == 2


async def test_few_counts_are_kept() -> None:
    counting = Counting()
    tokens = ToolTokens(counting)
    for _ in range(2):
        for number in range(KEPT_MAX + 1):
            await tokens.exceed(1, "m", [Tool(f"t{number}")])
    assert counting.asked == 2 * (KEPT_MAX + 1)
