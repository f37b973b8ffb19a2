"""Every transport against a real server: statuses, limits, back-pressure, cancelling, closing."""

import asyncio
import socket
from collections.abc import AsyncIterator

import grpc
import pytest

from smg_node.core.errors import SmgError
from smg_node.engines.grpc.known_transports import open_transport, transports
from smg_node.engines.transport.grpcio_transport import NOTICES_MAX, channel_arguments
from smg_node.engines.transport.transport import (
    StatusCode,
    TransportError,
    TransportOptions,
    metadata_of,
)
from support.engines.engine_server import EngineServer, RefusalError
from support.engines.transports import transport_to

ECHO, COUNT = "/t.T/Echo", "/t.T/Count"
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


async def never(_: bytes) -> bytes:
    await asyncio.sleep(3600)
    return b""


async def silence(_: bytes) -> AsyncIterator[bytes]:
    await asyncio.sleep(3600)
    yield b""


@pytest.mark.parametrize("connections", [1, 2])
async def test_bytes_go_there_and_come_back_with_headers(kind: str, connections: int) -> None:
    async with EngineServer() as server:
        server.unary[ECHO] = lambda request: request[::-1]
        options = TransportOptions(connections=connections)
        async with transport_to(kind, server.target, options) as transport:
            for _ in range(3):
                answer = await transport.unary(
                    ECHO, b"\x00abc", timeout_s=GENEROUS_S, headers={"traceparent": "00-1"}
                )
                assert answer == b"cba\x00"
    assert server.calls[0].headers["traceparent"] == "00-1"


async def test_a_stream_yields_every_message_and_ends(kind: str) -> None:
    async def three(request: bytes) -> AsyncIterator[bytes]:
        for number in range(3):
            yield request * number

    async with EngineServer() as server:
        server.streams[COUNT] = three
        async with transport_to(kind, server.target) as transport:
            stream = transport.stream(COUNT, b"x", timeout_s=GENEROUS_S)
            got = [message async for batch in stream for message in batch]
            stream.cancel()  # harmless after its end
    assert got == [b"", b"x", b"xx"]


@pytest.mark.parametrize("status", [one for one in StatusCode if one is not StatusCode.OK])
async def test_every_status_arrives_as_itself_with_its_words_and_trailers(
    kind: str, status: StatusCode
) -> None:
    native = next(one for one in grpc.StatusCode if one.value[0] == status)

    def refuse(_: bytes) -> bytes:
        raise RefusalError(native, "because", [("why", "test")])

    async def refuse_stream(_: bytes) -> AsyncIterator[bytes]:
        yield b"one"
        raise RefusalError(native, "because", [("why", "test")])

    async with EngineServer() as server:
        server.unary[ECHO], server.streams[COUNT] = refuse, refuse_stream
        async with transport_to(kind, server.target) as transport:
            with pytest.raises(TransportError) as unary:
                await transport.unary(ECHO, b"", timeout_s=GENEROUS_S)
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            assert list(await anext(stream)) == [b"one"]
            with pytest.raises(TransportError) as streamed:
                await anext(stream)
    for error in (unary.value, streamed.value):
        assert (error.status, error.message, error.trailers["why"]) == (status, "because", "test")


async def test_a_method_nobody_serves_is_unimplemented(kind: str) -> None:
    async with EngineServer() as server, transport_to(kind, server.target) as transport:
        with pytest.raises(TransportError) as raised:
            await transport.unary("/no.Such/Method", b"", timeout_s=GENEROUS_S)
    assert raised.value.status is StatusCode.UNIMPLEMENTED


async def test_a_deadline_is_kept(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = silence
        async with transport_to(kind, server.target) as transport:
            with pytest.raises(TransportError) as raised:
                await anext(transport.stream(COUNT, b"", timeout_s=0.1))
    assert raised.value.status is StatusCode.DEADLINE_EXCEEDED


async def test_a_dead_port_is_unavailable(kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        async with transport_to(kind, f"127.0.0.1:{taken.getsockname()[1]}") as transport:
            with pytest.raises(TransportError) as raised:
                await transport.unary(ECHO, b"", timeout_s=600)
            with pytest.raises(TransportError) as streamed:
                await anext(transport.stream(ECHO, b"", timeout_s=600))
    assert raised.value.status is StatusCode.UNAVAILABLE
    assert streamed.value.status is StatusCode.UNAVAILABLE


async def test_a_port_that_accepts_and_says_nothing_is_unavailable_after_the_connect_timeout(
    kind: str,
) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        options = TransportOptions(connect_s=0.2)
        async with transport_to(kind, f"127.0.0.1:{mute.getsockname()[1]}", options) as transport:
            async with asyncio.timeout(GENEROUS_S):
                with pytest.raises(TransportError) as raised:
                    await transport.unary(ECHO, b"", timeout_s=600)
    assert raised.value.status is StatusCode.UNAVAILABLE


async def test_an_engine_that_comes_back_is_reached_again(kind: str) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{taken.getsockname()[1]}"
        async with transport_to(kind, target) as transport:
            with pytest.raises(TransportError):
                await transport.unary(ECHO, b"", timeout_s=GENEROUS_S)
            server = EngineServer()
            server.unary[ECHO] = lambda request: request
            native = grpc.aio.server()
            native.add_generic_rpc_handlers((server,))
            native.add_insecure_port(target)
            await native.start()
            try:
                async with asyncio.timeout(GENEROUS_S):
                    while True:
                        try:
                            assert await transport.unary(ECHO, b"!", timeout_s=5) == b"!"
                            break
                        except TransportError:
                            await asyncio.sleep(0.05)
            finally:
                await native.stop(None)


async def test_a_message_over_the_limit_is_damage_and_not_pressure(kind: str) -> None:
    async def large(_: bytes) -> AsyncIterator[bytes]:
        yield b"x" * 5000

    async with EngineServer() as server:
        server.streams[COUNT] = large
        options = TransportOptions(message_max_bytes=2000)
        async with transport_to(kind, server.target, options) as transport:
            with pytest.raises(TransportError) as raised:
                await anext(transport.stream(COUNT, b"", timeout_s=GENEROUS_S))
            with pytest.raises(TransportError) as sent:
                await transport.unary(ECHO, b"x" * 2001, timeout_s=GENEROUS_S)
    assert raised.value.status is StatusCode.DATA_LOSS
    assert sent.value.status is StatusCode.OUT_OF_RANGE
    assert server.calls_of("Echo") == []


async def test_a_request_over_the_servers_limit_is_told_from_a_full_engine(kind: str) -> None:
    async with EngineServer(options=[("grpc.max_receive_message_length", 100)]) as server:
        server.unary[ECHO] = lambda request: request
        async with transport_to(kind, server.target) as transport:
            with pytest.raises(TransportError) as raised:
                await transport.unary(ECHO, b"x" * 101, timeout_s=GENEROUS_S)
    assert raised.value.status is StatusCode.RESOURCE_EXHAUSTED
    assert "message larger than max" in raised.value.message  # what engines.status looks for


async def test_a_cancel_wakes_the_reader_and_reaches_the_server(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = silence
        async with transport_to(kind, server.target) as transport:
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            served = await server.call_of("Count")
            asyncio.get_running_loop().call_later(0.02, stream.cancel)
            with pytest.raises(TransportError) as raised:
                await anext(stream)
            async with asyncio.timeout(GENEROUS_S):
                await served.ended.wait()
    assert raised.value.status is StatusCode.CANCELLED
    assert served.cancelled


async def test_a_cancelled_task_is_cancelled_and_not_a_failed_call(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = silence
        server.unary[ECHO] = never
        async with transport_to(kind, server.target) as transport:
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(stream)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await transport.unary(ECHO, b"", timeout_s=GENEROUS_S)


async def test_a_reader_that_pauses_pauses_the_sender(kind: str) -> None:
    async def flood(_: bytes) -> AsyncIterator[bytes]:
        for _number in range(10_000):
            yield b"x" * 100_000  # a gigabyte in all

    async with EngineServer() as server:
        server.streams[COUNT] = flood
        async with transport_to(kind, server.target) as transport:
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            await anext(stream)
            served = await server.call_of("Count")
            before = -1
            while before != served.sent:  # until the sender stands still
                before = served.sent
                await asyncio.sleep(0.1)
            stream.cancel()
    assert served.sent < 500


async def test_a_notice_is_sent_without_waiting_and_its_failure_is_nobodys(kind: str) -> None:
    async with EngineServer() as server:
        server.unary[ECHO] = lambda request: request
        async with transport_to(kind, server.target) as transport:
            assert transport.notify(ECHO, b"gone", timeout_s=GENEROUS_S)
            assert transport.notify("/no.Such/Method", b"", timeout_s=GENEROUS_S)
            served = await server.call_of("Echo")
    assert served.request == b"gone"


async def test_notices_are_bounded(kind: str) -> None:
    async with EngineServer() as server:
        server.unary[ECHO] = never
        async with transport_to(kind, server.target) as transport:
            sent = [
                transport.notify(ECHO, b"", timeout_s=GENEROUS_S) for _ in range(NOTICES_MAX + 5)
            ]
    assert sent.count(False) == 5
    assert sent[:NOTICES_MAX] == [True] * NOTICES_MAX


async def test_closing_ends_what_runs_and_refuses_what_comes(kind: str) -> None:
    async with EngineServer() as server:
        server.streams[COUNT] = endless
        transport = open_transport(kind, server.target, TransportOptions())
        stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
        await anext(stream)
        await transport.close()
        with pytest.raises(TransportError) as raised:
            async for _ in stream:
                pass
        with pytest.raises(TransportError):
            await transport.unary(ECHO, b"", timeout_s=1)
        assert not transport.notify(ECHO, b"", timeout_s=1)
    assert raised.value.status is StatusCode.CANCELLED


def test_headers_that_would_break_a_call_stay_behind() -> None:
    headers = {
        "traceparent": "00-1",
        "x-request-id": "a b",
        "X-Upper": "1",
        "grpc-timeout": "1S",
        "blob-bin": "x",
        "x-new\nline": "1",
        "x-value": "a\r\nb",
        "x-umlaut": "ä",
        "": "x",
    }
    assert dict(metadata_of(headers)) == {"traceparent": "00-1", "x-request-id": "a b"}
    assert list(metadata_of(None)) == []


def test_pings_and_limits_reach_the_library() -> None:
    arguments = dict(channel_arguments(TransportOptions(ping_interval_s=30, connect_s=5)))
    assert arguments["grpc.keepalive_time_ms"] == 30_000
    assert arguments["grpc.http2.max_pings_without_data"] == 0
    assert arguments["grpc.keepalive_permit_without_calls"] == 0
    assert arguments["grpc.min_reconnect_backoff_ms"] == 5_000
    assert arguments["grpc.max_receive_message_length"] == 64 * 1024 * 1024


async def test_pings_keep_a_silent_stream_alive_as_often_as_servers_allow(kind: str) -> None:
    async def slow(_: bytes) -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(1.2)
        yield b"b"

    allowed = [("grpc.http2.min_ping_interval_without_data_ms", 50)]
    async with EngineServer(options=allowed) as server:
        server.streams[COUNT] = slow
        options = TransportOptions(ping_interval_s=0.2)
        async with transport_to(kind, server.target, options) as transport:
            stream = transport.stream(COUNT, b"", timeout_s=GENEROUS_S)
            assert [list(batch) async for batch in stream] == [[b"a"], [b"b"]]


async def test_transports_are_known_by_name() -> None:
    assert list(transports()) == ["grpcio", "h2"]
    with pytest.raises(SmgError, match="grpcio"):
        open_transport("grpc", "127.0.0.1:1", TransportOptions())
    transport = open_transport("grpcio", "127.0.0.1:1", TransportOptions())
    assert transport.target == "127.0.0.1:1"
    await transport.close()
