"""Answers whose tools have had all their rounds say so in a header, for APIs that call it a length."""

from typing import Any

from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.pipeline.tool_loop.ports import LoopOptions
from support.http.http_node import node
from support.http.raw_http import Response, ask
from support.mcp.loop_world import Model, Servers, calls, loop, said, speech

PATH = "/v1/chat/completions"
WISH: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": [{"type": "mcp", "server_label": "w"}],
}


async def answered(*passes: Any, rounds_max: int) -> Response:
    async with node() as at:
        at.parts.dialects = {
            **at.parts.dialects,
            "chat": ChatDialect(ReaderOptions(tool_servers=True)),
        }
        options = LoopOptions(rounds_max=rounds_max)
        servers = Servers({"w": ["weather"]})
        at.parts.generations = loop(Model(*passes), servers, options=lambda: options)
        return await ask(at.port, "POST", PATH, WISH, {"x-smg-mcp": "enabled"})


async def test_rounds_that_ran_out_are_told_from_an_answer_that_was_too_long() -> None:
    endless = [speech(calls("weather", f'{{"n":{number}}}')) for number in range(3)]
    answer = await answered(*endless, rounds_max=3)
    assert answer.json()["choices"][0]["finish_reason"] == "length"
    assert answer.headers["x-smg-tool-rounds"] == "3"
    long = await answered(speech(said("and so on"), reason="length"), rounds_max=3)
    assert long.json()["choices"][0]["finish_reason"] == "length"
    assert "x-smg-tool-rounds" not in long.headers


async def test_what_a_model_says_behind_a_call_of_no_tool_is_a_paragraph_of_its_own() -> None:
    lost = speech(said("Let me see."), calls("nonsense", block=1))
    answer = await answered(lost, speech(said("Four.")), rounds_max=3)
    assert answer.json()["choices"][0]["message"]["content"] == "Let me see.\n\nFour."


async def test_an_answer_within_its_rounds_says_nothing() -> None:
    answer = await answered(speech(calls("weather")), speech(said("done")), rounds_max=3)
    assert answer.json()["choices"][0]["message"]["content"] == "done"
    assert "x-smg-tool-rounds" not in answer.headers
