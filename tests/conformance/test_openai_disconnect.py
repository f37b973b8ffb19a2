"""A client of the official library that goes away frees the engine it had occupied."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import grpc
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam
from smg_grpc_proto import mlx_engine_pb2 as words
from smg_grpc_proto import mlx_engine_pb2_grpc as rpc

from support.processes.mlx_engine import MlxEngine
from support.processes.node import RunningNode

pytestmark = pytest.mark.conformance

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Never stop."}]
# The promise is one second, and it takes two milliseconds; the rest is for a machine that is busy with
# other tests. Left alone, the model would go on for 32,000 tokens, half a minute at least.
FREE_S = 3.0
Running = Callable[[], int]


@pytest.fixture
def running(engines: dict[str, MlxEngine]) -> Iterator[Running]:
    """How many requests the engine that never ends is working on, by its own account."""
    with grpc.insecure_channel(engines["endless"].address) as channel:
        stub = rpc.MlxEngineStub(channel)
        request = words.GetServerInfoRequest()
        yield lambda: int(stub.GetServerInfo(request, timeout=10).active_requests)


async def until(true: Callable[[], bool], within_s: float) -> None:
    give_up_s = time.monotonic() + within_s
    while not await asyncio.to_thread(true):
        assert time.monotonic() < give_up_s, "it did not come true"
        await asyncio.sleep(0.02)


# They ask for the next chunk by hand: a loop that is left by `break` drops a generator, which the event loop
# then closes beside the stream's own end, and the library may find itself closed twice at once.


async def leaves_a_stream(client: AsyncOpenAI, running: Running) -> None:
    stream = await client.chat.completions.create(model="endless", messages=HELLO, stream=True)
    async with stream:
        text = ""
        while len(text) <= 40:
            text += (await anext(stream)).choices[0].delta.content or ""
        assert running() == 1


async def gives_up_waiting(client: AsyncOpenAI, running: Running) -> None:
    # Cancelled from outside: of its own timeout the client tells the node, which then says it first.
    async def wait() -> None:
        await client.chat.completions.create(model="endless", messages=HELLO)

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait())
        await until(lambda: running() == 1, FREE_S)
        waiting.cancel()


async def leaves_three_choices(client: AsyncOpenAI, running: Running) -> None:
    stream = await client.chat.completions.create(model="endless", messages=HELLO, stream=True, n=3)
    async with stream:
        seen: set[int] = set()
        while len(seen) < 3:
            chunk = await anext(stream)
            seen |= {choice.index for choice in chunk.choices if choice.delta.content}
        assert running() == 3


@pytest.mark.parametrize("leave", [leaves_a_stream, gives_up_waiting, leaves_three_choices])
async def test_the_slot_of_a_client_that_left_is_free_again(
    async_client: AsyncOpenAI,
    node: RunningNode,
    running: Running,
    leave: Callable[[AsyncOpenAI, Running], Awaitable[None]],
) -> None:
    gone_before = node.metric("smg_node_http_requests_total", status="499")
    await until(lambda: running() == 0, FREE_S)
    await leave(async_client, running)
    await until(lambda: running() == 0, FREE_S)
    await until(lambda: node.metric("smg_node_worker_inflight") == 0, FREE_S)
    await until(
        lambda: node.metric("smg_node_http_requests_total", status="499") == gone_before + 1, FREE_S
    )
    answer = await async_client.chat.completions.create(
        model="endless", messages=HELLO, max_tokens=3
    )
    assert answer.choices[0].finish_reason == "length"


async def test_one_client_that_leaves_disturbs_no_other(
    async_client: AsyncOpenAI, running: Running, engines: dict[str, MlxEngine]
) -> None:
    async def stay() -> str:
        stream = await async_client.chat.completions.create(
            model="endless", messages=HELLO, stream=True, max_tokens=600
        )
        async with stream:
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async with asyncio.TaskGroup() as group:
        staying = group.create_task(stay())
        for _ in range(5):
            stream = await async_client.chat.completions.create(
                model="endless", messages=HELLO, stream=True
            )
            async with stream:
                while not (await anext(stream)).choices[0].delta.content:
                    pass
    script = engines["endless"].script
    assert script.text * (600 // len(script.ids)) == staying.result()
    await until(lambda: running() == 0, FREE_S)
