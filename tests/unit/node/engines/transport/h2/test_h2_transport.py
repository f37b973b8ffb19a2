"""Our own HTTP/2 over sockets: opening, filling, losing and leaving connections."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from unittest.mock import Mock

import pytest

from smg_node.engines.transport.h2 import connection_io as link
from smg_node.engines.transport.h2.h2_transport import H2Transport
from smg_node.engines.transport.h2.message_stream import H2Stream
from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.stream_state import STREAM_WINDOW
from smg_node.engines.transport.transport import (
    MessageStream,
    StatusCode,
    TransportError,
    TransportOptions,
)
from support.engines.engine_server import EngineServer
from support.engines.h2_calls import GENEROUS_S, METHOD, all_of, call, failure, into
from support.engines.h2_server import H2Server, Peer, Script, answer, body, head, message, tail


@asynccontextmanager
async def opened(
    script: Script,
    *,
    options: TransportOptions | None = None,
    hello: bytes | None = None,
    answers_pings: bool = True,
) -> AsyncIterator[tuple[H2Server, H2Transport]]:
    async with H2Server(script, hello=hello, answers_pings=answers_pings) as server:
        transport = H2Transport(server.target, options or TransportOptions())
        try:
            yield server, transport
        finally:
            await transport.close()


async def says(peer: Peer, number: int) -> None:
    peer.say(answer(number, b"said"))


async def keeps_quiet(peer: Peer, number: int) -> None:
    peer.say(head(number))


async def test_calls_share_one_connection_without_delay() -> None:
    async with opened(says) as (server, transport):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(all_of(call(transport))) for _ in range(50)]
        assert [task.result() for task in tasks] == [[b"said"]] * 50
        assert len(server.peers) == 1
        wire = next(iter(transport._all))._transport
        assert wire is not None
        sock = wire.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        patience_ms = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert patience_ms == link.PING_ANSWER_S * 1000


async def test_who_is_alone_asks_at_once_and_others_of_the_same_turn_together() -> None:
    async with opened(says) as (_, transport):
        await all_of(call(transport))
        line = next(iter(transport._all))
        wire = line._transport
        assert wire is not None
        line._transport = counting = Mock(wraps=wire)
        streams = [call(transport) for _ in range(4)]
        assert counting.write.call_count == 1
        got = [await all_of(stream) for stream in streams]
        assert got == [[b"said"]] * 4
        first, others = (len(one.args[0]) for one in counting.write.call_args_list)
        assert others > 2 * first


async def test_two_connections_where_two_are_wanted() -> None:
    async with opened(says, options=TransportOptions(connections=2)) as (server, transport):
        for _ in range(6):
            await all_of(call(transport))
        await asyncio.sleep(0.05)
        assert len(server.peers) == 2


@pytest.mark.parametrize(
    ("hello", "says_why"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1"), (b"\x15\x03\x01\x00\x02\x02\x46!!", "large")],
)
async def test_a_server_of_something_else_is_unavailable(hello: bytes, says_why: str) -> None:
    async with opened(says, hello=hello) as (_, transport):
        error = await failure(call(transport))
    assert error.status is StatusCode.UNAVAILABLE
    assert says_why in error.message


async def test_after_a_failure_calls_fail_at_once_and_soon_another_is_tried() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        transport = H2Transport(f"127.0.0.1:{taken.getsockname()[1]}", TransportOptions())
        began_s = asyncio.get_running_loop().time()
        for _ in range(50):
            assert "failed to connect" in (await failure(call(transport))).message
        assert transport._retry_s == pytest.approx(0.1)
        while transport._retry_s < 1.0:
            await asyncio.sleep(0.05)
            await failure(call(transport))
        assert asyncio.get_running_loop().time() - began_s < 10
        await transport.close()


async def test_a_leaving_server_ends_what_it_began_and_new_calls_go_elsewhere() -> None:
    async def leaves(peer: Peer, number: int) -> None:
        if len(server.peers) > 1:
            peer.say(answer(number, b"new"))
        elif number == 3:
            peer.say(frames.frame(frames.GOAWAY, 0, 0, b"\0\0\0\x01" + bytes(4)))
            peer.say(head(1) + body(1, message(b"old")))

    async with opened(leaves) as (server, transport):
        first = call(transport)
        await asyncio.sleep(0.05)
        refused = await failure(call(transport))
        assert "not processed" in refused.message
        assert list(await anext(first)) == [b"old"]
        assert await all_of(call(transport)) == [b"new"]
        server.peers[0].say(tail(1))
        assert await all_of(first) == []
        await asyncio.sleep(0.05)
        assert len(transport._all) == 1  # the old connection is closed with its last call


@pytest.mark.parametrize("cut", [1, 8, 9, 12, 20])
async def test_a_connection_that_is_lost_ends_its_calls_and_the_next_one_has_another(
    cut: int,
) -> None:
    async def dies(peer: Peer, number: int) -> None:
        if len(server.peers) > 1:
            peer.say(answer(number, b"said"))
        elif number == 3:
            peer.say(answer(1, b"one") + answer(3, b"three")[:cut])
            peer.writer.close()

    async with opened(dies) as (server, transport):
        async with asyncio.TaskGroup() as group:
            first = group.create_task(all_of(call(transport)))
            second = group.create_task(failure(call(transport)))
        assert first.result() == [b"one"]
        assert second.result().status is StatusCode.UNAVAILABLE
        assert await all_of(call(transport)) == [b"said"]


async def test_a_silent_server_is_asked_and_left_only_if_it_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "PING_ANSWER_S", 0.3)
    options = TransportOptions(ping_interval_s=0.2)
    async with opened(keeps_quiet, options=options, answers_pings=False) as (server, transport):
        error = await failure(call(transport))
        assert error.status is StatusCode.UNAVAILABLE
        assert "ping" in error.message
        assert len(server.peers[0].heard(frames.PING)) == 1
    async with opened(keeps_quiet, options=options) as (server, transport):
        quiet = call(transport)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await anext(quiet)
        asked = len(server.peers[0].heard(frames.PING))
        assert 2 <= asked <= 5
        quiet.cancel()
        await asyncio.sleep(0.4)
        assert len(server.peers[0].heard(frames.PING)) == asked  # nobody waits: nobody asks


async def test_a_server_that_wants_fewer_pings_gets_fewer() -> None:
    async def annoyed(peer: Peer, number: int) -> None:
        peer.say(frames.frame(frames.GOAWAY, 0, 0, bytes(7) + b"\x0b"))

    async with opened(annoyed, options=TransportOptions(ping_interval_s=7)) as (_, transport):
        await failure(call(transport))
        assert transport._ping_interval_s == 14


async def test_a_deadline_is_sent_and_kept_here_as_well() -> None:
    async with opened(keeps_quiet) as (server, transport):
        assert (await failure(call(transport, 0.05))).status is StatusCode.DEADLINE_EXCEEDED
        await asyncio.sleep(0.02)
        assert server.peers[0].heard(frames.RST_STREAM) == [(0, 1, b"\0\0\0\x08")]
        assert transport._timer is None or len(transport._deadlines) == 0


async def test_a_reset_by_a_server_whose_clock_is_quicker_is_the_deadline_too() -> None:
    async def resets(peer: Peer, number: int) -> None:
        asyncio.get_running_loop().call_later(0.03, peer.say, frames.reset(number, frames.CANCEL))

    async with opened(resets) as (_, transport):
        assert (await failure(call(transport, 0.02))).status is StatusCode.DEADLINE_EXCEEDED
        assert (await failure(call(transport))).status is StatusCode.CANCELLED


async def test_a_storm_of_resets_harms_no_neighbour() -> None:
    async def storms(peer: Peer, number: int) -> None:
        peer.say(frames.reset(number, number % 14) if number % 4 == 1 else answer(number, b"x"))

    hello = frames.settings((frames.MAX_STREAMS, 404))
    async with opened(storms, hello=hello) as (server, transport):
        streams = [call(transport) for _ in range(400)]
        ended = 0
        for stream in streams:
            try:
                assert await all_of(stream) == [b"x"]
                ended += 1
            except TransportError:
                pass
        assert ended == 200
        assert len(server.peers) == 1


async def test_a_slow_reader_costs_a_window_and_its_neighbour_nothing() -> None:
    async def floods(_: bytes) -> AsyncIterator[bytes]:
        for _number in range(2_000):
            yield b"x" * 1_000

    async with EngineServer() as server:
        server.streams[METHOD] = floods
        transport = H2Transport(server.target, TransportOptions())
        slow, quick = call(transport), call(transport)
        slow.pause()
        assert len(await all_of(quick)) == 2_000
        assert isinstance(slow, H2Stream)
        assert sum([len(one) for one in slow.messages]) <= STREAM_WINDOW
        slow.resume()
        assert len(await all_of(slow)) == 2_000
        await transport.close()


async def test_a_large_request_and_a_large_answer_pass_within_the_windows() -> None:
    async with EngineServer(
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    ) as server:
        server.unary[METHOD] = lambda request: request
        transport = H2Transport(server.target, TransportOptions())
        large = bytes(range(256)) * 40_000
        async with asyncio.TaskGroup() as group:
            one = group.create_task(transport.unary(METHOD, large, timeout_s=GENEROUS_S))
            two = group.create_task(transport.unary(METHOD, b"small", timeout_s=GENEROUS_S))
        assert one.result() == large
        assert two.result() == b"small"
        await transport.close()


async def test_no_answer_and_two_answers_are_not_one() -> None:
    async def miscounts(peer: Peer, number: int) -> None:
        peer.say(answer(number, *[b"x"] * (0 if number == 1 else 2)))

    async with opened(miscounts) as (_, transport):
        for _ in range(2):
            with pytest.raises(TransportError) as raised:
                await transport.unary(METHOD, b"", timeout_s=GENEROUS_S)
            assert raised.value.status is StatusCode.INTERNAL


async def test_closing_ends_calls_that_wait_for_a_connection() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        transport = H2Transport(f"127.0.0.1:{mute.getsockname()[1]}", TransportOptions())
        waiting = call(transport)
        await asyncio.sleep(0.05)
        assert transport.notify(METHOD, b"", timeout_s=1)
        await transport.close()
        assert (await failure(waiting)).status is StatusCode.CANCELLED
        with pytest.raises(TransportError):
            call(transport)


async def test_a_call_begun_by_another_ones_taker_goes_out_with_it() -> None:
    async with opened(says) as (_, transport):
        more: list[MessageStream] = []

        def take(_: Sequence[bytes]) -> bool:
            more.append(call(transport))
            return True

        assert await call(transport).pour(take)
        assert await all_of(more[0]) == [b"said"]


async def test_a_cancelled_task_leaves_a_pour_and_loses_nothing() -> None:
    async def trickles(peer: Peer, number: int) -> None:
        peer.say(head(number) + body(number, message(b"one")))
        asyncio.get_running_loop().call_later(
            0.05, peer.say, body(number, message(b"two")) + tail(number)
        )

    async with opened(trickles) as (_, transport):
        stream = call(transport)
        got: list[bytes] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.03):
                await stream.pour(into(got))
        await asyncio.sleep(0.05)  # nobody reads
        got += [one async for batch in stream for one in batch]
        assert got == [b"one", b"two"]


async def test_a_mistake_of_ours_is_one_calls_and_not_its_neighbours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def later(peer: Peer, number: int) -> None:
        if number == 3:
            peer.say(answer(1, b"one") + answer(3, b"three"))

    def mistaken() -> None:
        raise AssertionError("ours")

    class Broken(H2Stream):
        __slots__ = ()

        def deliver(self) -> None:
            mistaken()

    async with opened(later) as (_, transport):
        monkeypatch.setattr("smg_node.engines.transport.h2.h2_transport.H2Stream", Broken)
        call(transport)
        monkeypatch.undo()
        assert await all_of(call(transport)) == [b"three"]
        transport._deadlines = type(transport._deadlines)()  # the broken one hears of no end
    assert "could not be handed out" in caplog.text
