"""Streams with peers that lie, hang up, never read, never answer, or are too many."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import pytest
from msgspec import structs

from smg_mesh.io.errors import MeshError
from smg_mesh.io.streams import AskError, StreamError, StreamServer
from smg_mesh.io.streams.frames import MESSAGE_BYTES_MAX, encode_frame
from smg_mesh.io.streams.server import EXCHANGES_MAX, QUESTIONS_MAX
from smg_mesh.io.streams.service import ASK, EXCHANGE, PING
from smg_mesh.swim.messages import Address
from smg_mesh.sync.exchange.exchange_machine import Frame, Novel, Rows
from smg_proto import mesh_pb2
from support.mesh.mesh_streams import Gate, Node, impostor, plain, stranger, until, up
from support.state.exchanges import claims, opening

END = vars(grpc.aio)["EOF"]  # missing in the published stubs


def tasks() -> int:
    """Count tasks; gRPC keeps two for each server, and replaces them."""
    return len(asyncio.all_tasks())


async def end_of(call: Any) -> tuple[grpc.StatusCode, str]:
    """Read a call to its end and return how it ended."""
    with suppress(grpc.aio.AioRpcError):
        while await call.read() is not END:
            pass
    return await call.code(), await call.details()


@pytest.mark.parametrize("cut", range(6))
async def test_a_caller_that_hangs_up_after_any_frame_leaves_nothing_behind(cut: int) -> None:
    theirs = claims(2500, "theirs")
    frames: list[Frame] = [
        opening("b", full=True),
        Rows(tuple(theirs[:1000]), last=False),
        Rows(tuple(theirs[1000:2000]), last=False),
        Novel(ignorable=True),
        Rows(tuple(theirs[2000:]), last=True),
    ]
    node = Node("a", plain("a"), claims(2500, "mine"))
    async with up(node):
        idle = tasks()
        async with stranger(node) as channel:
            call = channel.stream_stream(EXCHANGE)()
            for frame in frames[:cut]:
                await call.write(encode_frame(frame))
            taught = sum(len(frame.claims) for frame in frames[:cut] if isinstance(frame, Rows))
            await until(lambda: len(node.learned_rows) >= taught)
            call.cancel()
        await until(lambda: node.server.exchanges == 0)
        assert node.learned_rows == theirs[:taught]
        await until(lambda: tasks() <= idle)


@pytest.mark.parametrize("cut", range(5))
async def test_a_server_that_ends_after_any_frame_leaves_nothing_behind(cut: int) -> None:
    theirs = claims(2500, "theirs")

    async def serve(_requests: object, context: Any) -> None:
        said: list[Frame] = [
            opening("b", full=True),
            Rows(tuple(theirs[:1000]), last=False),
            Rows(tuple(theirs[1000:2000]), last=False),
            Rows(tuple(theirs[2000:]), last=True),
        ]
        await context.read()
        for frame in said[:cut]:
            await context.write(encode_frame(frame))
        if cut < len(said):
            return  # hangs up in the middle, and says that all is well
        while await context.read() is not END:
            pass

    node = Node("a", plain("a"), claims(1500, "mine"))
    async with up(node), impostor(serve) as address:
        idle = tasks()
        talk = node.client.exchange(
            address,
            "b",
            node.machine(opener=True),
            node.learned_rows.extend,
            turns=node.turns,
            deadline_ms=2_000,
        )
        if cut < 4:
            # What we still had to say may wait for a reader that is gone, until the deadline.
            with pytest.raises(StreamError, match=r"hung up before the end|in time"):
                await talk
        else:
            await talk
        assert node.learned_rows == theirs[: len(node.learned_rows)]
        assert len(node.learned_rows) in ([0], [0], [0, 1000], [0, 1000, 2000], [2500])[cut]
        await until(lambda: tasks() <= idle)


GARBAGE = [
    b"\xff\xff\xff",
    mesh_pb2.ExchangeFrame().SerializeToString(),
    mesh_pb2.ExchangeFrame(opening=mesh_pb2.Opening(name="B A D")).SerializeToString(),
    encode_frame(Rows((), last=True)),
    encode_frame(opening("b", label="other")),
    encode_frame(opening("b", wire_version=9)),
]


@pytest.mark.parametrize("data", GARBAGE)
async def test_garbage_ends_an_exchange_on_the_serving_side(data: bytes) -> None:
    node = Node("a", plain("a"), claims(3))
    async with up(node), stranger(node) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(data)
        code, details = await end_of(call)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert details.startswith("the caller ")
    assert node.learned_rows == []
    assert node.counts.total() == 2


@pytest.mark.parametrize("data", GARBAGE)
async def test_garbage_ends_an_exchange_on_the_calling_side(data: bytes) -> None:
    async def serve(_requests: object, context: Any) -> None:
        await context.read()
        await context.write(data)
        await asyncio.sleep(20)

    node = Node("a", plain("a"), claims(3))
    async with up(node), impostor(serve) as address:
        with pytest.raises(StreamError):
            await node.client.exchange(
                address,
                "b",
                node.machine(opener=True),
                node.learned_rows.extend,
                turns=node.turns,
                deadline_ms=9_000,
            )
    assert node.learned_rows == []


async def test_rows_that_are_no_claims_end_an_exchange() -> None:
    node = Node("a", plain("a"), claims(3))
    bad = mesh_pb2.ExchangeFrame(rows=mesh_pb2.Rows(claims=b"\x91\x01", last=True))
    async with up(node), stranger(node) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("b", full=True)))
        await call.write(bad.SerializeToString())
        assert (await end_of(call))[0] is grpc.StatusCode.FAILED_PRECONDITION
    assert node.counts["stream_refused", "wire"] == 1
    assert node.learned_rows == []


async def test_frames_after_the_end_are_refused_by_the_caller() -> None:
    async def serve(_requests: object, context: Any) -> None:
        await context.read()
        await context.write(encode_frame(opening("b")))
        await context.write(encode_frame(Rows(tuple(claims(1)), last=True)))

    node = Node("a", plain("a"), said={"full": False})
    async with up(node), impostor(serve) as address:
        with pytest.raises(StreamError, match="after the end"):
            await node.client.exchange(
                address,
                None,
                node.machine(opener=True),
                node.learned_rows.extend,
                turns=node.turns,
                deadline_ms=9_000,
            )
    assert node.learned_rows == []


@pytest.mark.parametrize("method", [PING, ASK])
async def test_garbage_to_other_methods_is_refused(method: str) -> None:
    node = Node("a", plain("a"))
    async with up(node), stranger(node) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await channel.unary_unary(method)(b"\xff\xff\xff", timeout=5)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert node.counts["stream_refused", "wire"] == 1


async def test_a_message_too_large_is_refused() -> None:
    node = Node("a", plain("a"))
    async with up(node), stranger(node) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await channel.unary_unary(PING)(bytes(MESSAGE_BYTES_MAX + 1), timeout=5)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_peer_that_says_nothing_is_cut() -> None:
    node = Node("a", plain("a"), claims(3))
    async with up(node, frame_s=0.1), stranger(node) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("b", full=True)))
        assert (await end_of(call))[0] is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: node.server.exchanges == 0)
    assert node.counts["stream_refused", "slow"] == 1


async def test_a_peer_that_never_reads_is_cut() -> None:
    rows = [structs.replace(claim, meta=bytes(512)) for claim in claims(20_000)]
    node = Node("a", plain("a"), rows)
    async with (
        up(node, frame_s=0.3),
        stranger(node, **{"http2.lookahead_bytes": 1024, "http2.bdp_probe": 0}) as channel,
    ):
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("b", full=True)))
        await call.write(encode_frame(Rows((), last=True)))
        await until(lambda: node.counts["stream_refused", "slow"] == 1)
        await until(lambda: node.server.exchanges == 0)


async def test_a_peer_that_drips_is_cut_in_the_end() -> None:
    node = Node("a", plain("a"), claims(3))
    async with up(node, exchange_s=1.0), stranger(node) as channel:
        call = channel.stream_stream(EXCHANGE)()
        await call.write(encode_frame(opening("b", full=True)))
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(end_of(call))
            with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
                for _ in range(500):
                    await call.write(encode_frame(Rows(tuple(claims(1)), last=False)))
                    await asyncio.sleep(0.01)
        assert reading.result()[0] in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL)
    assert node.counts["stream_refused", "slow"] == 1
    assert len(node.learned_rows) < 500


async def test_a_server_that_never_answers_is_given_up_at_the_deadline() -> None:
    async def serve(_requests: object, context: Any) -> None:
        await asyncio.sleep(60)

    node = Node("a", plain("a"), claims(20_000))
    async with up(node), impostor(serve) as address:
        with pytest.raises(StreamError) as raised:
            await node.client.exchange(
                address,
                "b",
                node.machine(opener=True),
                node.learned_rows.extend,
                turns=node.turns,
                deadline_ms=300,
            )
        assert raised.value.reason == "deadline"
        assert node.client.open_channels == 0


async def test_exchanges_served_are_counted_off_and_the_rest_refused_at_once() -> None:
    node, caller = Node("a", plain("a"), claims(3)), Node("b", plain("b"))
    async with up(node, caller), stranger(node) as channel:
        calls = [channel.stream_stream(EXCHANGE)() for _ in range(EXCHANGES_MAX)]
        for call in calls:
            await call.write(encode_frame(opening("b", full=True)))
        await until(lambda: node.server.exchanges == EXCHANGES_MAX)
        with pytest.raises(StreamError) as raised:
            await caller.exchange_with(node)
        assert raised.value.reason == "busy"
        assert await caller.client.ping(node.address, "a", 1, deadline_ms=5000), "pings get through"
        for call in calls:
            call.cancel()
        await until(lambda: node.server.exchanges == 0)
        assert (await caller.exchange_with(node)).name == "a"


async def test_questions_are_counted_off_too() -> None:
    gate = Gate()
    node = Node("a", plain("a"), gate=gate, replies=lambda *_: b"")
    caller = Node("b", plain("b"))
    async with up(node, caller), asyncio.TaskGroup() as group:
        for _ in range(QUESTIONS_MAX):
            group.create_task(caller.client.ask(node.address, "a", "t", b"", deadline_s=20))
        await until(lambda: gate.waiting == QUESTIONS_MAX)
        with pytest.raises(AskError) as raised:
            await caller.client.ask(node.address, "a", "t", b"", deadline_s=20)
        assert raised.value.code == "busy"
        gate.open.set()


async def test_an_answer_that_does_not_come_is_a_timeout_and_is_cancelled() -> None:
    gate = Gate()
    node, caller = Node("a", plain("a"), gate=gate), Node("b", plain("b"))
    async with up(node, caller):
        with pytest.raises(AskError) as raised:
            await caller.client.ask(node.address, "a", "t", b"", deadline_s=0.3)
        assert raised.value.code == "timeout"
        await until(lambda: gate.waiting == 0)


async def test_a_cancelled_caller_cancels_the_answer() -> None:
    gate = Gate()
    node, caller = Node("a", plain("a"), gate=gate), Node("b", plain("b"))
    async with up(node, caller):
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(
                caller.client.ask(node.address, "a", "t", b"", deadline_s=30)
            )
            await until(lambda: gate.waiting == 1)
            asking.cancel()
        assert asking.cancelled()
        await until(lambda: gate.waiting == 0)


async def test_stopping_cuts_calls_after_the_grace() -> None:
    gate = Gate()
    node, caller = Node("a", plain("a"), gate=gate), Node("b", plain("b"))
    async with up(node, caller), asyncio.TaskGroup() as group:
        asking = group.create_task(failed(caller, node))
        await until(lambda: gate.waiting == 1)
        await node.server.stop(0.05)
        assert await asking
    assert gate.waiting == 0


async def failed(caller: Node, node: Node) -> bool:
    try:
        await caller.client.ask(node.address, "a", "t", b"", deadline_s=20)
    except AskError:
        return True
    return False


async def test_closing_the_client_fails_its_calls_without_cancelling_their_tasks() -> None:
    gate = Gate()
    node, caller = Node("a", plain("a"), gate=gate), Node("b", plain("b"))
    async with up(node, caller), asyncio.TaskGroup() as group:
        asking = group.create_task(failed(caller, node))
        await until(lambda: gate.waiting == 1)
        await caller.client.close()
        assert await asking
        with pytest.raises(AskError, match="closed"):
            await caller.client.ask(node.address, "a", "t", b"", deadline_s=1)


async def test_a_port_that_is_taken_is_an_error_that_names_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        node = Node("a", plain("a"))
        server = StreamServer(Address("127.0.0.1", port), node.credentials, node, count=node.count)
        with pytest.raises(MeshError, match=rf"127.0.0.1:{port} \(TCP\): Address already in use"):
            await server.start()


async def test_two_servers_never_share_a_port() -> None:
    a, b = Node("a", plain("a")), Node("b", plain("b"))
    async with up(a):
        server = StreamServer(a.address, b.credentials, b, count=b.count)
        with pytest.raises(MeshError, match="Address already in use"):
            await server.start()


async def test_a_process_that_does_not_shake_hands_holds_nobody_up() -> None:
    a, b = Node("a", plain("a")), Node("b", plain("b"))
    async with up(a, b):
        with socket.socket() as silent:
            silent.connect(a.address)
            assert await b.client.ping(a.address, "a", 1, deadline_ms=5000)
