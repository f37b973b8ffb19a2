"""A subscription to KV events over a real gRPC server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import grpc
import pytest
from smg_grpc_proto.generated import common_pb2 as pb

from smg_node.core.errors import SmgError
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.kv_events import CURSOR_CODE, LOST_CODE, KvBatch
from smg_node.engines.transport.grpc_status import CLOSED_CODE
from support.engines.engine_bench import GENEROUS_S, Bench, bench
from support.engines.engine_server import RefusalError, StreamScript

METHOD = "SubscribeKvEvents"
WITH_EVENTS = [one for one in WIRES if one is not Contract.MLX]


def numbered(*sequences: int) -> StreamScript:
    async def script(_: bytes) -> AsyncIterator[bytes]:
        for sequence in sequences:
            yield pb.KvEventBatch(sequence_number=sequence).SerializeToString()

    return script


def refuses(status: grpc.StatusCode) -> StreamScript:
    async def script(_: bytes) -> AsyncIterator[bytes]:
        yield pb.KvEventBatch(sequence_number=1).SerializeToString()
        raise RefusalError(status)

    return script


async def heard(b: Bench, start: int = 0) -> list[KvBatch]:
    async with asyncio.timeout(GENEROUS_S):
        return [one async for batches in b.engine.kv_events(start) for one in batches]


async def failed(b: Bench) -> SmgError:
    with pytest.raises(SmgError) as raised:
        await heard(b)
    return raised.value


@pytest.mark.parametrize("contract", WITH_EVENTS)
async def test_every_contract_with_events_is_subscribed_to_in_its_service(
    contract: Contract,
) -> None:
    async with bench(contract) as b:
        b.server.streams[b.path(METHOD)] = numbered(3, 4)
        assert [batch.sequence for batch in await heard(b, 3)] == [3, 4]
        asked = pb.SubscribeKvEventsRequest.FromString(b.server.calls[0].request)
    assert asked.start_sequence_number == 3


@pytest.mark.parametrize(
    ("status", "code", "counted"),
    [
        (grpc.StatusCode.OUT_OF_RANGE, CURSOR_CODE, False),
        (grpc.StatusCode.DATA_LOSS, LOST_CODE, False),
        (grpc.StatusCode.UNIMPLEMENTED, "upstream_unimplemented", False),
        (grpc.StatusCode.INTERNAL, "upstream_error", True),
        (grpc.StatusCode.UNAVAILABLE, "upstream_unavailable", True),
    ],
)
async def test_a_subscription_that_breaks_says_why_and_what_is_a_fault_is_counted(
    status: grpc.StatusCode, code: str, counted: bool
) -> None:
    async with bench() as b:
        b.server.streams[b.path(METHOD)] = refuses(status)
        error = await failed(b)
        assert error.code == code
        assert [one["status"] for one in b.labels("engine_error")] == [status.name] * counted


async def test_an_engine_without_the_method_says_so_by_its_status() -> None:
    async with bench(Contract.MLX) as b:
        assert (await failed(b)).status == 501


async def test_a_message_that_cannot_be_read_ends_the_subscription_at_the_engine_too() -> None:
    async def garbage(_: bytes) -> AsyncIterator[bytes]:
        yield b"\xff\xff\xff"
        await asyncio.sleep(3600)

    async with bench() as b:
        b.server.streams[b.path(METHOD)] = garbage
        assert "cannot be read" in (await failed(b)).message
        await asyncio.wait_for(b.server.calls[0].ended.wait(), GENEROUS_S)


async def test_closing_the_iterator_ends_the_subscription_at_the_engine() -> None:
    async def for_ever(_: bytes) -> AsyncIterator[bytes]:
        yield pb.KvEventBatch(sequence_number=1).SerializeToString()
        await asyncio.sleep(3600)

    async with bench() as b:
        b.server.streams[b.path(METHOD)] = for_ever
        async with asyncio.timeout(GENEROUS_S), aclosing(b.engine.kv_events(0)) as stream:
            async for batches in stream:
                assert batches[0].sequence == 1
                break
        await asyncio.wait_for(b.server.calls[0].ended.wait(), GENEROUS_S)
        assert b.server.calls[0].cancelled


async def test_closing_the_engine_ends_a_subscription_as_its_own_doing() -> None:
    async def silent(_: bytes) -> AsyncIterator[bytes]:
        yield pb.KvEventBatch(sequence_number=1).SerializeToString()
        await asyncio.sleep(3600)

    async with bench() as b:
        b.server.streams[b.path(METHOD)] = silent
        async with asyncio.timeout(GENEROUS_S):
            stream = b.engine.kv_events(0)
            assert (await anext(stream))[0].sequence == 1
            await b.engine.close()
            with pytest.raises(SmgError) as raised:
                await anext(stream)
        assert raised.value.code == CLOSED_CODE
        assert (await failed(b)).code == CLOSED_CODE
        assert b.labels("engine_error") == []
