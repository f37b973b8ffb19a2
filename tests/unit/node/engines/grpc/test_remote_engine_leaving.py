"""One engine over a real gRPC server: every limit of silence, and every way to leave a stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import grpc
import pytest
from msgspec import structs

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import Contract
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.transport.grpc_status import Verdict, verdict
from support.engines.engine_bench import (
    GENEROUS_S,
    Bench,
    bench,
    collected,
    drained,
    failure,
    fast_forever,
    ids_of,
    request,
)
from support.engines.engine_server import RefusalError, StreamScript

pytestmark = pytest.mark.usefixtures("each_transport")


def scripted_silence(b: Bench, *first: bytes) -> StreamScript:
    async def script(_: bytes) -> AsyncIterator[bytes]:
        for message in first:
            yield message
        await asyncio.sleep(3600)

    return script


@pytest.mark.parametrize(
    ("options", "asked", "said", "code", "limit", "judged"),
    [
        ({}, {"timeout_s": 0.1}, 1, "deadline_exceeded", "deadline", Verdict.NEITHER),
        ({}, {"timeout_s": 0.1}, 0, "deadline_exceeded", "deadline", Verdict.NEITHER),
        ({"first_event_s": 0.1}, {}, 0, "first_event_timeout", "first_event", Verdict.FAILURE),
        ({"stall_s": 0.1}, {}, 1, "upstream_stalled", "stall", Verdict.FAILURE),
        (
            {"first_event_s": 0.02, "stall_s": 0.02},
            {"timeout_s": 0.2, "stream": False},
            0,
            "deadline_exceeded",
            "deadline",
            Verdict.NEITHER,
        ),
    ],
)
async def test_silence_has_limits(
    options: dict[str, float],
    asked: dict[str, Any],
    said: int,
    code: str,
    limit: str,
    judged: Verdict,
) -> None:
    async with bench(options=replace(EngineOptions(), **options)) as b:  # type: ignore[arg-type]  # all floats
        b.generates(scripted_silence(b, *[b.chunk(1)] * said))
        error = await failure(b.engine, request(**asked))
        served = await b.server.call_of("Generate")
        async with asyncio.timeout(GENEROUS_S):
            await served.ended.wait()
    assert (error.kind, error.code) == (ErrorKind.UPSTREAM_TIMEOUT, code)
    assert verdict(error) is judged
    assert b.labels("engine_timeout") == [{"contract": "vllm", "limit": limit}]
    assert served.cancelled


async def test_a_later_attempt_is_given_less_time_for_its_first_word() -> None:
    async with bench(options=replace(EngineOptions(), first_event_s=0.3, stall_s=0.3)) as b:
        b.generates(scripted_silence(b))
        error = await failure(b.engine, structs.replace(request(), silences=2))
        assert (error.code, error.message) == (
            "first_event_timeout",
            "the engine said nothing for 0.1 s",
        )


async def test_an_answer_that_is_not_streamed_may_be_silent_between_its_choices() -> None:
    async with bench(options=replace(EngineOptions(), stall_s=0.02)) as b:
        b.generates(scripted_silence(b, b.complete("stop", 1)))
        error = await failure(b.engine, request(n=2, stream=False, timeout_s=0.3))
    assert error.code == "deadline_exceeded"


async def test_a_stream_that_keeps_talking_does_not_stall() -> None:
    async def talks(_: bytes) -> AsyncIterator[bytes]:
        for _number in range(12):
            await asyncio.sleep(0.05)
            yield b.chunk(1)
        yield b.complete("length")

    async with bench(options=replace(EngineOptions(), stall_s=0.4, first_event_s=0.4)) as b:
        b.generates(talks)
        assert ids_of(await collected(b.engine, request())) == [1] * 12


async def test_an_engines_own_timeout_is_its_failure_and_not_our_deadline() -> None:
    async def late(_: bytes) -> AsyncIterator[bytes]:
        raise RefusalError(grpc.StatusCode.DEADLINE_EXCEEDED, "queue")
        yield b""

    async with bench() as b:
        b.generates(late)
        error = await failure(b.engine, request())
    assert (error.kind, error.code) == (ErrorKind.UPSTREAM_TIMEOUT, "upstream_timeout")
    assert verdict(error) is Verdict.FAILURE


@pytest.mark.parametrize("contract", list(WIRES))
async def test_closing_the_iterator_reaches_the_engine_twice(contract: Contract) -> None:
    async with bench(contract) as b:
        b.generates(lambda _: fast_forever(b))
        async with aclosing(b.engine.generate(request())) as chunks:
            await anext(chunks)
        served = await b.server.call_of("Generate")
        async with asyncio.timeout(GENEROUS_S):
            await served.ended.wait()  # by the reset,
        abort = await b.server.call_of("Abort")  # and by word
    assert served.cancelled
    assert b"smg-1" in abort.request
    assert b.labels("engine_abort") == [{"contract": contract.value, "sent": "true"}]


async def test_closing_the_iterator_is_immediate_and_quick_at_the_engine() -> None:
    async with bench() as b:
        b.generates(lambda _: fast_forever(b))
        chunks = b.engine.generate(request())
        await anext(chunks)
        served = await b.server.call_of("Generate")
        loop = asyncio.get_running_loop()
        started = loop.time()
        await chunks.aclose()
        left = loop.time()
        await served.ended.wait()
        ended = loop.time()
    # Milliseconds and half a second are what is promised; the bounds leave room for a busy machine.
    assert left - started < 1.0
    assert ended - started < 5.0


async def test_a_cancelled_task_reaches_the_engine_too() -> None:
    async with bench() as b:
        b.generates(scripted_silence(b, b.chunk(1)))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(collected(b.engine, request()))
            served = await b.server.call_of("Generate")
            task.cancel()
        assert task.cancelled()
        async with asyncio.timeout(GENEROUS_S):
            await served.ended.wait()
    assert served.cancelled


@pytest.mark.parametrize("contract", list(WIRES))
async def test_an_abort_of_ours_ends_the_stream_in_silence_although_the_engine_does_not(
    contract: Contract,
) -> None:
    async with bench(contract) as b:
        b.generates(scripted_silence(b, b.chunk(1)))
        seen: list[Chunk] = []
        async with asyncio.timeout(GENEROUS_S):
            async for chunks in b.engine.generate(request()):
                seen += chunks
                if len(seen) == 1:
                    await b.engine.abort("smg-1")
        served = b.server.calls_of("Generate")[0]
        await served.ended.wait()
    assert [one.finish for one in seen] == [None, "abort"]
    assert len(b.server.calls_of("Abort")) == 1
    assert b.events == []


async def test_an_abort_the_engine_answers_first_is_silent_as_well() -> None:
    stop = asyncio.Event()

    async def aborts(_: bytes) -> AsyncIterator[bytes]:
        yield b.chunk(1)
        await stop.wait()
        raise RefusalError(grpc.StatusCode.ABORTED, "as you wish")

    async with bench(Contract.TOKENSPEED) as b:
        b.generates(aborts)
        seen: list[Chunk] = []
        async for chunks in b.engine.generate(request()):
            seen += chunks
            if not stop.is_set():
                b.engine._running["smg-1"]._reader.aborted = True
                stop.set()
    assert [one.finish for one in seen] == [None, "abort"]


async def test_an_abort_of_a_request_that_is_gone_is_still_said() -> None:
    async with bench() as b:
        await b.engine.abort("nobody")
        assert len(b.server.calls_of("Abort")) == 1


async def test_closing_the_engine_ends_running_streams_as_a_failure_of_ours() -> None:
    async with bench() as b:
        b.generates(lambda _: fast_forever(b))
        chunks = b.engine.generate(request())
        await anext(chunks)
        await b.engine.close()
        with pytest.raises(SmgError) as raised:
            await drained(chunks)
        late = await failure(b.engine, request("smg-2"))
    for error in (raised.value, late):
        assert (error.kind, error.code) == (ErrorKind.UPSTREAM_FAILED, "worker_removed")
        assert verdict(error) is Verdict.NEITHER


async def test_one_streams_trouble_is_nobody_elses() -> None:
    async def by_id(data: bytes) -> AsyncIterator[bytes]:
        number = int(b.pb.GenerateRequest.FromString(data).request_id)
        yield b.chunk(number)
        if number % 3 == 1:
            yield b"\xff"
        if number % 3 == 2:
            await asyncio.sleep(3600)
        for _ in range(20):
            yield b.chunk(number)
            await asyncio.sleep(0)
        yield b.complete("length")

    async def one(number: int) -> list[int]:
        asked = request(str(number))
        if number % 3 == 0:
            return ids_of(await collected(b.engine, asked))
        if number % 3 == 1:
            assert (await failure(b.engine, asked)).kind is ErrorKind.UPSTREAM_FAILED
            return []
        async with aclosing(b.engine.generate(asked)) as chunks:
            await anext(chunks)
        return []

    async with bench() as b:
        b.generates(by_id)
        async with asyncio.timeout(GENEROUS_S):
            found = await asyncio.gather(*[one(number) for number in range(45)])
    assert all(found[number] == [number] * 21 for number in range(0, 45, 3))
