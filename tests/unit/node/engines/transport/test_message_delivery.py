"""Answers handed out as they come, over every transport: to whom, until when, and whose mistakes are whose."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest

from smg_node.engines.grpc.known_transports import transports
from smg_node.engines.transport.transport import StatusCode, TransportError
from support.engines.engine_server import EngineServer, RefusalError
from support.engines.transports import transport_to

COUNT = "/t.T/Count"
GENEROUS_S = 20.0


@pytest.fixture(params=list(transports()))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def endless(_: bytes) -> AsyncIterator[bytes]:
    number = 0
    while True:
        yield b"%d" % number
        number += 1
        await asyncio.sleep(0.001)


async def numbers(_: bytes) -> AsyncIterator[bytes]:
    for number in range(20):
        yield b"%d" % number
        await asyncio.sleep(0.001)


TWENTY = [b"%d" % number for number in range(20)]


async def test_what_is_poured_and_what_is_pulled_are_one_stream(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = numbers
        async with transport_to(kind, server.target) as transport:
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            got = list(await anext(stream))

            def some(batch: Sequence[bytes]) -> bool:
                got.extend(batch)
                return len(got) < 5

            def rest(batch: Sequence[bytes]) -> bool:
                got.extend(batch)
                return True

            assert not await stream.pour(some)
            got += await anext(stream)
            assert await stream.pour(rest)
            assert got == TWENTY
            assert await stream.pour(rest)  # over is over
            assert [batch async for batch in stream] == []


async def test_a_status_ends_pouring_as_it_ends_pulling(kind: str) -> None:
    async def refuse(_: bytes) -> AsyncIterator[bytes]:
        yield b"one"
        raise RefusalError(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")

    async with EngineServer() as server:
        server.streams[COUNT] = refuse
        async with transport_to(kind, server.target) as transport:
            got: list[bytes] = []
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)

            def take(batch: Sequence[bytes]) -> bool:
                got.extend(batch)
                return True

            with pytest.raises(TransportError, match="full") as raised:
                await stream.pour(take)
    assert got == [b"one"]
    assert raised.value.status is StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("mistake", [ValueError, ConnectionError, StopIteration, KeyError])
async def test_what_a_taker_raises_is_its_own_and_harms_no_neighbour(
    kind: str, mistake: type[Exception]
) -> None:
    async def raising(batch: Sequence[bytes]) -> None:
        def take(_: Sequence[bytes]) -> bool:
            raise mistake("mine")

        await wrong.pour(take)

    async with EngineServer() as server:
        server.streams[COUNT] = numbers
        async with transport_to(kind, server.target) as transport:
            wrong = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            right = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            with pytest.raises((mistake, RuntimeError)):
                await raising([])
            got = [message async for batch in right for message in batch]
            served = next(call for call in server.calls if call.sent < len(TWENTY))
            async with asyncio.timeout(GENEROUS_S):
                await served.ended.wait()
            assert served.cancelled
    assert got == TWENTY


async def test_a_pause_from_inside_holds_everything_back_until_it_is_over(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = numbers
        async with transport_to(kind, server.target) as transport:
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            got: list[bytes] = []
            held = False

            def take(batch: Sequence[bytes]) -> bool:
                nonlocal held
                assert not held
                got.extend(batch)
                held = True
                stream.pause()
                asyncio.get_running_loop().call_later(0.005, resume)
                return True

            def resume() -> None:
                nonlocal held
                held = False
                stream.resume()

            assert await stream.pour(take)
    assert got == TWENTY


async def test_a_cancel_ends_a_pause_and_a_pour(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = endless
        async with transport_to(kind, server.target) as transport:
            for paused in (False, True):
                stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
                if paused:
                    stream.pause()
                asyncio.get_running_loop().call_later(0.02, stream.cancel)
                with pytest.raises(TransportError) as raised:
                    await stream.pour(lambda _: True)
                assert raised.value.status is StatusCode.CANCELLED
                stream.resume()


async def test_a_taker_may_drop_its_own_call(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = endless
        async with transport_to(kind, server.target) as transport:
            for wants_more in (False, True):
                stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)

                def take(_: Sequence[bytes], wants_more: bool = wants_more) -> bool:
                    stream.cancel()  # noqa: B023 - poured within this turn of the loop
                    return wants_more

                if wants_more:
                    with pytest.raises(TransportError) as raised:
                        await stream.pour(take)
                    assert raised.value.status is StatusCode.CANCELLED
                else:
                    assert not await stream.pour(take)


@pytest.mark.parametrize("more", [True, False])
async def test_a_taker_may_cancel_the_task_that_waits_for_it(kind: str, more: bool) -> None:
    def take(_: Sequence[bytes]) -> bool:
        task.cancel()
        return more

    async with EngineServer() as server:
        server.streams[COUNT] = numbers
        async with transport_to(kind, server.target) as transport:
            right = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            wrong = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)

            async def wait() -> None:
                await wrong.pour(take)

            async with asyncio.TaskGroup() as group:
                task = group.create_task(wait())
            assert task.cancelled()
            wrong.cancel()
            got = [message async for batch in right for message in batch]
    assert got == TWENTY
