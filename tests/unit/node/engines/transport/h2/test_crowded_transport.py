"""Our own HTTP/2 over sockets: engines that take no more calls at once, who waits for them and who goes first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_node.engines.transport.h2.h2_transport import CROWDED_MAX, WAITING_MAX, H2Transport
from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.transport import StatusCode, TransportError, TransportOptions
from support.engines.h2_calls import GENEROUS_S, METHOD, all_of, call, failure
from support.engines.h2_server import H2Server, Peer, Script, answer, head
from support.mesh.mesh_cluster import until


@asynccontextmanager
async def taking(calls: int, script: Script) -> AsyncIterator[tuple[H2Server, H2Transport]]:
    """A server that takes so many calls at once on a connection, and a transport to it."""
    hello = frames.settings((frames.MAX_STREAMS, calls))
    async with H2Server(script, hello=hello) as server:
        transport = H2Transport(server.target, TransportOptions())
        try:
            yield server, transport
        finally:
            await transport.close()


async def keeps_quiet(peer: Peer, number: int) -> None:
    peer.say(head(number))


async def test_an_engine_that_takes_one_call_at_once_gets_a_second_connection_and_a_queue() -> None:
    async def slowly(peer: Peer, number: int) -> None:
        asyncio.get_running_loop().call_later(0.01, peer.say, answer(number, b"said"))

    async with taking(1, slowly) as (server, transport):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(all_of(call(transport))) for _ in range(9)]
        assert [task.result() for task in tasks] == [[b"said"]] * 9
        assert len(server.peers) == 2


async def test_a_crowd_gets_as_many_connections_as_it_needs_of_a_generous_server() -> None:
    async with taking(100, keeps_quiet) as (server, transport):
        streams = [call(transport) for _ in range(3 * 96)]
        await until(lambda: not transport._waiting)
        assert len(server.peers) == 3
        for stream in streams:
            stream.cancel()


async def test_questions_and_notices_reach_an_engine_that_takes_no_more_calls() -> None:
    kept = 2 * 96

    async def quiet_but_for_the_last(peer: Peer, number: int) -> None:
        peer.say(answer(number, b"said") if number > kept else head(number))

    async with taking(100, quiet_but_for_the_last) as (server, transport):
        streams = [call(transport) for _ in range(96 * CROWDED_MAX + 30)]
        await until(lambda: len(transport._waiting) <= 30)
        assert len(server.peers) == CROWDED_MAX
        for _ in range(9):
            assert await transport.unary(METHOD, b"well?", timeout_s=GENEROUS_S) == b"said"
        assert transport.notify(METHOD, b"", timeout_s=GENEROUS_S)
        with pytest.raises(TransportError) as raised:
            await transport.unary(METHOD, b"do", timeout_s=0.1, work=True)
        assert raised.value.status is StatusCode.DEADLINE_EXCEEDED
        assert len(transport._waiting) == 30
        for stream in streams:
            stream.cancel()


async def test_a_question_that_must_wait_is_the_first_to_go() -> None:
    said: list[int] = []

    async def one_after_the_other(peer: Peer, number: int) -> None:
        said.append(number)
        asyncio.get_running_loop().call_later(0.02, peer.say, answer(number, b"said"))

    async with taking(1, one_after_the_other) as (_, transport):
        streams = [call(transport) for _ in range(20)]
        await asyncio.sleep(0.03)
        assert await transport.unary(METHOD, b"well?", timeout_s=GENEROUS_S) == b"said"
        assert len(said) < 12
        for stream in streams:
            stream.cancel()


async def test_a_queue_is_bounded_and_its_calls_keep_their_deadlines_and_may_leave() -> None:
    async with taking(1, keeps_quiet) as (_, transport):
        under_way = [call(transport) for _ in range(2)]
        await asyncio.sleep(0.1)
        late = call(transport, 0.05)
        leaving = call(transport)
        asyncio.get_running_loop().call_later(0.02, leaving.cancel)
        assert (await failure(leaving)).status is StatusCode.CANCELLED
        assert (await failure(late)).status is StatusCode.DEADLINE_EXCEEDED
        waiting = [call(transport) for _ in range(WAITING_MAX)]
        refused = await failure(call(transport))
        assert refused.status is StatusCode.UNAVAILABLE
        assert "too many" in refused.message
        for stream in (*under_way, *waiting):
            stream.cancel()
