"""A call whose chunks are told within the wake-ups that bring them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import pytest

from smg_node.core.errors import SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import PulledChunks, ends_itself
from support.engines.engine_bench import bench, fast_forever, ids_of, request


class Taker:
    """Takes chunks, so many batches at a time."""

    def __init__(self, at_once: int = 10**9) -> None:
        self.chunks: list[Chunk] = []
        self.at_once = at_once
        self.batches = 0

    def take(self, chunks: Sequence[Chunk]) -> bool:
        assert chunks
        self.chunks += chunks
        self.batches += 1
        return self.batches % self.at_once != 0


@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_all_is_told_once_and_in_order_however_often_its_reader_has_enough(
    at_once: int,
) -> None:
    async with bench() as b:

        async def script(_: bytes) -> AsyncIterator[bytes]:
            for one in range(30):
                yield b.chunk(one)
                if one % 7 == 0:
                    await asyncio.sleep(0.002)
            yield b.complete()

        b.generates(script)
        taker = Taker(at_once)
        call = b.engine.call(request())
        pours = 1
        while not await call.pour(taker.take):
            pours += 1
        await call.aclose()
        await call.aclose()
        assert ids_of(taker.chunks) == list(range(30))
        assert [one.finish for one in taker.chunks if one.finish] == ["stop"]
        assert pours == 1 + taker.batches // at_once
        assert b.server.calls_of("Abort") == []


async def test_who_has_enough_and_closes_it_ends_it_at_the_engine() -> None:
    async with bench() as b:
        b.generates(lambda _: fast_forever(b))
        call = b.engine.call(request())
        assert not await call.pour(Taker(1).take)
        await call.aclose()
        async with asyncio.timeout(5):
            await b.server.calls_of("Generate")[0].ended.wait()
            while not b.server.calls_of("Abort"):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)


async def test_what_a_taker_raises_ends_its_call_and_no_other_of_the_connection() -> None:
    async with bench() as b:

        async def script(_: bytes) -> AsyncIterator[bytes]:
            for one in range(50):
                yield b.chunk(one)
                await asyncio.sleep(0.001)
            yield b.complete()

        def raises(_chunks: Sequence[Chunk]) -> bool:
            raise ConnectionResetError("the client is gone")

        b.generates(script)
        calls = [b.engine.call(request(f"smg-{one}")) for one in range(20)]
        takers = [Taker() for _ in calls]

        async def poured(at: int) -> None:
            if at % 2:
                with pytest.raises(ConnectionResetError):
                    await calls[at].pour(raises)
            else:
                assert await calls[at].pour(takers[at].take)
            await calls[at].aclose()

        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for at in range(len(calls)):
                group.create_task(poured(at))
        assert all(ids_of(taker.chunks) == list(range(50)) for taker in takers[::2])
        assert b.labels("engine_error") == [], "it was no fault of the engine"


async def test_what_came_before_a_mistake_of_the_engine_is_told_first() -> None:
    async with bench() as b:
        b.says(b.chunk(1), b.chunk(2), b"\xff\xff garbage")
        taker = Taker()
        call = b.engine.call(request())
        with pytest.raises(SmgError):
            await call.pour(taker.take)
        await call.aclose()
        assert ids_of(taker.chunks) == [1, 2]


async def test_a_call_that_nobody_wants_any_more_is_given_a_moment_and_no_longer() -> None:
    async with bench() as b:
        b.generates(lambda _: fast_forever(b))
        call = b.engine.call(request())
        began_s = asyncio.get_running_loop().time()
        await ends_itself(call, 0.05)
        assert asyncio.get_running_loop().time() - began_s >= 0.05
        await call.aclose()


async def test_chunks_that_are_pulled_pour_as_well() -> None:
    closed = False

    async def batches() -> AsyncGenerator[Sequence[Chunk], None]:
        nonlocal closed
        try:
            for one in range(6):
                yield [Chunk(0, (one,))]
        finally:
            closed = True

    async def told() -> None:
        taker = Taker(2)
        stream = PulledChunks(batches())
        pours = 0
        while not await stream.pour(taker.take):
            pours += 1
        assert (ids_of(taker.chunks), pours) == ([0, 1, 2, 3, 4, 5], 3)
        await stream.aclose()

    await told()
    assert closed
