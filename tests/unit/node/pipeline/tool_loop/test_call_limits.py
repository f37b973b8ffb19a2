"""Limits of a loop: rounds, calls, repetitions, tokens, and calls at a time."""

import asyncio

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Fail, RunEnd, RunStart, Usage
from smg_node.core.generation.request import Sampling
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.ports import LoopOptions
from support.mcp.loop_world import (
    Model,
    Servers,
    breaks,
    calls,
    heard,
    request,
    said,
    serving,
    speech,
)

W = {"w": ["weather", "tides"]}


async def test_an_endless_loop_pauses_after_its_rounds() -> None:
    model = Model(*(speech(calls("weather", f'{{"n":{n}}}')) for n in range(9)))
    servers = Servers(W)
    options = LoopOptions(rounds_max=3)
    listener = await heard(model, servers, request(serving("w")), options=lambda: options)
    assert len(model.runs) == len(servers.ran) == 3
    assert listener.reason() == "pause"
    assert len(listener.of(RunEnd)) == 3


async def test_calls_beyond_the_most_are_not_shown_and_the_last_pass_has_no_tools() -> None:
    five = [calls("weather", f'{{"n":{n}}}', block=n) for n in range(5)]
    model = Model(speech(*five), speech(said("enough")))
    servers = Servers(W)
    listener = await heard(model, servers, request(serving("w", calls_max=2)))
    assert len(servers.ran) == 2
    assert len(listener.of(RunStart)) == 2
    assert [block.kind for block in listener.answer().choices[0].blocks] == ["call", "call", "text"]
    told = model.results(1)
    assert len(told) == 5
    assert all("max_tool_calls" in text for text in told[2:])
    assert model.prompt(0).choice.mode == "auto"
    assert model.prompt(1).choice.mode == "none"
    assert [tool.name for tool in model.prompt(1).tools] == ["tides", "weather"]
    assert listener.reason() == "stop"


async def test_a_model_that_calls_in_its_last_pass_is_at_its_end() -> None:
    model = Model(
        speech(calls("weather"), calls("tides", block=1)), speech(calls("tides", '{"n":1}'))
    )
    listener = await heard(model, Servers(W), request(serving("w", calls_max=1)))
    assert len(model.runs) == 2
    assert listener.reason() == "stop"


@pytest.mark.parametrize(("replay", "once"), [("always", False), ("never", True)])
async def test_who_asks_again_is_told_that_calls_would_be_run_again(
    replay: str, once: bool
) -> None:
    error = SmgError(ErrorKind.UPSTREAM_FAILED, "gone")
    model = Model(speech(calls("weather")), breaks(said("well"), error=error))
    servers = Servers(W, specs={"w": {"replay": replay}})
    listener = await heard(model, servers, request(serving("w")))
    assert isinstance(listener.events[-1], Fail)
    assert listener.events[-1].error.once is once


async def test_no_calls_at_all_may_be_run() -> None:
    model = Model(speech(calls("weather")), speech(said("so be it")))
    servers = Servers(W)
    listener = await heard(model, servers, request(serving("w", calls_max=0)))
    assert not servers.ran
    assert listener.text() == "so be it"


async def test_the_third_same_call_is_not_run_and_the_model_is_told() -> None:
    spelled = ['{"a":1,"b":2}', '{"b":2,"a":1}', '{ "a": 1, "b": 2 }']
    model = Model(*(speech(calls("weather", one)) for one in spelled), speech(said("done")))
    servers = Servers(W)
    listener = await heard(model, servers, request(serving("w")))
    assert len(servers.ran) == 2
    last = listener.results()[-1]
    assert last.error is not None
    assert (last.error.type, last.error.code) == ("mcp_protocol_error", -32001)
    assert model.results(3)[-1].startswith("not run: the same call")


async def test_calls_that_differ_are_all_run() -> None:
    blocks = [calls("weather", f'{{"n":{n}}}', block=n) for n in range(4)]
    model = Model(speech(*blocks), speech(said("done")))
    servers = Servers(W)
    await heard(model, servers, request(serving("w")))
    assert len(servers.ran) == 4


@pytest.mark.parametrize(("session", "most"), [("shared", 8), ("thread", 1)])
async def test_so_many_run_at_a_time_and_one_in_a_session_of_its_own(
    session: str, most: int
) -> None:
    blocks = [calls("weather", f'{{"n":{n}}}', block=n) for n in range(20)]
    model = Model(speech(*blocks), speech(said("done")))

    async def slow(tool: str, arguments: str, options: CallOptions) -> CallResult:
        await asyncio.sleep(0.01)
        return CallResult(({"type": "text", "text": f"{tool} {arguments}"},))

    servers = Servers(W, slow, specs={"w": {"session": session}})
    listener = await heard(model, servers, request(serving("w")))
    assert servers.open_most == most
    assert [int(args[5:-1]) for _, _, args in servers.ran] == list(range(20))
    assert model.results(1) == [f'weather {{"n":{n}}}' for n in range(20)]
    assert listener.reason() == "stop"


async def test_results_are_in_the_order_of_calls_whatever_takes_longest() -> None:
    async def slow_first(tool: str, arguments: str, options: CallOptions) -> CallResult:
        wait_s = msgspec.json.decode(arguments)["s"]
        await asyncio.sleep(wait_s)
        return CallResult(({"type": "text", "text": arguments},))

    waits = ['{"s":0.05}', '{"s":0.0}', '{"s":0.02}']
    blocks = [calls("weather", one, block=at) for at, one in enumerate(waits)]
    model = Model(speech(*blocks), speech(said("done")))
    listener = await heard(model, Servers(W, slow_first), request(serving("w")))
    assert model.results(1) == waits
    assert [end.block for end in listener.of(RunEnd)] == [1, 2, 0]


async def test_tokens_are_bounded_over_all_passes() -> None:
    model = Model(
        speech(calls("weather", '{"n":1}'), usage=Usage(10, 6, 0)),
        speech(calls("weather", '{"n":2}'), usage=Usage(20, 4, 0)),
    )
    wish = request(serving("w"), sampling=Sampling(max_tokens=10, min_tokens=7))
    listener = await heard(model, Servers(W), wish)
    assert [run.request.sampling.max_tokens for run in model.runs] == [10, 4]
    assert [run.request.sampling.min_tokens for run in model.runs] == [7, 1]
    assert listener.reason() == "length"
    assert listener.answer().usage == Usage(30, 10, 0)


async def test_what_was_cut_in_its_arguments_is_not_run() -> None:
    model = Model(
        speech(calls("weather", '{"n":1}'), calls("weather", "", block=1), reason="length")
    )
    # The last call ends with the pass, in one wake-up.
    begin, first, second, end = next(model._passes)
    model._passes = iter([[begin, first, [*second, *end]]])
    servers = Servers(W)
    listener = await heard(model, servers, request(serving("w")))
    assert servers.ran == [("w", "weather", '{"n":1}')]
    assert "in the middle of its arguments" in listener.results()[1].text
    assert listener.reason() == "length"


async def test_costs_of_all_passes_are_summed() -> None:
    first = Usage(10, 4, 2, 1, 3, 1, "default", (("web_search", 1),), 7)
    second = Usage(20, 5, 12, 2, 0, 0, "flex", (("web_search", 2), ("x", 1)))
    model = Model(speech(calls("weather"), usage=first), speech(said("done"), usage=second))
    listener = await heard(model, Servers(W), request(serving("w")))
    assert listener.answer().usage == Usage(
        30, 9, 14, 3, 3, 1, "flex", (("web_search", 3), ("x", 1)), 7
    )
