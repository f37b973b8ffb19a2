"""Answers whose tools have had all their rounds say so in a header, or beside the reason, for APIs that call it a length."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.pipeline.tool_loop.ports import LoopOptions
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask
from support.mcp.loop_world import Model, Servers, calls, loop, said, speech

PATH = "/v1/chat/completions"
WISH: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": [{"type": "mcp", "server_label": "w"}],
}

SERVED = {"x-smg-mcp": "enabled"}


@asynccontextmanager
async def serving_node(*passes: Any, rounds_max: int) -> AsyncIterator[Node]:
    async with node() as at:
        at.parts.dialects = {
            **at.parts.dialects,
            "chat": ChatDialect(ReaderOptions(tool_servers=True)),
        }
        options = LoopOptions(rounds_max=rounds_max)
        servers = Servers({"w": ["weather"]})
        at.parts.generations = loop(Model(*passes), servers, options=lambda: options)
        yield at


async def answered(*passes: Any, rounds_max: int) -> Response:
    async with serving_node(*passes, rounds_max=rounds_max) as at:
        return await ask(at.port, "POST", PATH, WISH, SERVED)


async def streamed(*passes: Any, rounds_max: int, **more: Any) -> list[ChatCompletionChunk]:
    """Return the chunks of a stream as the official client reads them."""
    async with (
        serving_node(*passes, rounds_max=rounds_max) as at,
        AsyncOpenAI(
            base_url=f"http://127.0.0.1:{at.port}/v1", api_key="k", max_retries=0
        ) as client,
    ):
        stream = await client.chat.completions.create(
            **WISH, stream=True, **{"extra_headers": SERVED, **more}
        )
        return [chunk async for chunk in stream]


async def test_rounds_that_ran_out_are_told_from_an_answer_that_was_too_long() -> None:
    endless = [speech(calls("weather", f'{{"n":{number}}}')) for number in range(3)]
    answer = await answered(*endless, rounds_max=3)
    assert answer.json()["choices"][0]["finish_reason"] == "length"
    assert answer.headers["x-smg-tool-rounds"] == "3"
    assert answer.json()["smg"] == {"tool_rounds": 3}
    long = await answered(speech(said("and so on"), reason="length"), rounds_max=3)
    assert long.json()["choices"][0]["finish_reason"] == "length"
    assert "x-smg-tool-rounds" not in long.headers
    assert "smg" not in long.json()


async def test_what_a_model_says_behind_a_call_of_no_tool_is_a_paragraph_of_its_own() -> None:
    lost = speech(said("Let me see."), calls("nonsense", block=1))
    answer = await answered(lost, speech(said("Four.")), rounds_max=3)
    assert answer.json()["choices"][0]["message"]["content"] == "Let me see.\n\nFour."


async def test_an_answer_within_its_rounds_says_nothing() -> None:
    answer = await answered(speech(calls("weather")), speech(said("done")), rounds_max=3)
    assert answer.json()["choices"][0]["message"]["content"] == "done"
    assert "x-smg-tool-rounds" not in answer.headers


@pytest.mark.parametrize("include_usage", [False, True])
@pytest.mark.parametrize("shows", [False, True])
async def test_a_stream_says_so_on_the_chunk_with_the_reason(
    include_usage: bool, shows: bool
) -> None:
    endless = [speech(calls("weather", f'{{"n":{number}}}')) for number in range(3)]
    headers = {**SERVED, "x-smg-tool-runs": "show"} if shows else SERVED
    chunks = await streamed(
        *endless,
        rounds_max=3,
        extra_headers=headers,
        stream_options={"include_usage": include_usage},
    )
    told = [chunk for chunk in chunks if (chunk.model_extra or {}).get("smg")]
    assert told[0].choices[0].finish_reason == "length"
    extras = [(chunk.model_extra or {})["smg"] for chunk in told]
    assert extras[0]["tool_rounds"] == 3
    assert [one for extra in extras for one in extra].count("tool_rounds") == 1
    runs = extras[-1].get("tool_runs")
    assert (runs is None) is not shows
    if shows:
        assert [run["name"] for run in runs] == ["weather"] * 3


async def test_streams_within_their_rounds_and_those_that_are_too_long_say_nothing() -> None:
    for passes in (
        [speech(calls("weather")), speech(said("done"))],
        [speech(said("and so on"), reason="length")],
        [speech(calls("weather")), speech(said("wait"), reason="pause")],
    ):
        chunks = await streamed(*passes, rounds_max=3)
        assert not any("smg" in (chunk.model_extra or {}) for chunk in chunks)
        assert chunks[-1].choices[0].finish_reason in ("stop", "length")
