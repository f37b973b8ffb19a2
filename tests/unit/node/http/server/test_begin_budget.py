"""How a crowd begins: so many requests in a turn of the loop, in order, and what others want of the loop in between."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.server.begin_budget import BEGIN_MAX, BeginBudget
from smg_node.http.server.connections import ConnectionLimits, Listener
from smg_node.http.server.http1_connection import DirectConnection

LIMITS = ConnectionLimits(10_000, 99, 2_000, 50, 9.0, 9.0, 99, 9.0)


def get(name: str) -> bytes:
    return b"GET /%b HTTP/1.1\r\nhost: x\r\n\r\n" % name.encode()


class Door:
    """Notes what begins, and asks as calls to engines do: written in the next turn, once for all of this one."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.held: set[str] = set()
        """Whose answers never end."""
        self.cancelled: list[str] = []
        self.due = False

    @property
    def begun(self) -> list[str]:
        return [one for one in self.told if one not in ("asked", "polled")]

    async def serve(self, incoming: HttpRequest) -> bool:
        self.told.append(incoming.path[1:])
        if not self.due:
            self.due = True
            asyncio.get_running_loop().call_soon(self._ask)
        if incoming.path[1:] in self.held:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(incoming.path[1:])
                raise
        return True

    def _ask(self) -> None:
        self.due = False
        self.told.append("asked")

    def unparsed(self, line: Any, error: SmgError) -> None:
        self.told.append(error.code)

    def cut(self, reason: str) -> None:
        self.told.append(reason)


class Pipe:
    """A transport that notes whether it was closed."""

    get_extra_info = staticmethod(lambda _name: None)

    def __init__(self) -> None:
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def can_write_eof(self) -> bool:
        return False


class Crowd:
    """Connections of one listener, all waiting for a request."""

    def __init__(self) -> None:
        self.door = Door()
        self.listener = Listener(self.door, LIMITS, DirectConnection)
        self.pipes: list[Pipe] = []

    async def connected(self, count: int) -> list[DirectConnection]:
        made = []
        for _ in range(count):
            connection, pipe = DirectConnection(self.listener), Pipe()
            connection.connection_made(pipe)  # type: ignore[arg-type]  # as much of one as is needed
            made.append(connection)
            self.pipes.append(pipe)
        await asyncio.sleep(0)
        return made

    async def rest(self, turns: int = 60) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    def gone(self, connections: list[DirectConnection]) -> None:
        self.listener.drop = lambda: None  # type: ignore[method-assign]  # nothing to drop
        for connection in connections:
            connection.connection_lost(None)


Scene = Callable[[Crowd], Coroutine[Any, Any, None]]


def played(scene: Scene, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def play() -> None:
        crowd = Crowd()
        try:
            await scene(crowd)
        finally:
            if crowd.listener._timer is not None:
                crowd.listener._timer.cancel()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(play())


either_loop = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])


@either_loop
def test_a_crowd_begins_in_order_a_part_a_turn_and_its_engines_hear_before_the_next(
    loop: Any,
) -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(100)
        for number, connection in enumerate(connections):
            connection.data_received(get(f"{number}"))
        await crowd.rest()
        assert crowd.door.begun == [str(number) for number in range(100)]
        asked = [at for at, one in enumerate(crowd.door.told) if one == "asked"]
        assert asked == [32, 65, 98, 103], "each part was asked for before the next one began"
        crowd.gone(connections)

    assert BEGIN_MAX == 32
    played(scene, loop)


@either_loop
def test_between_two_parts_the_loop_looks_at_its_sockets(loop: Any) -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(100)
        running = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        looked: list[int] = []

        def readable() -> None:
            theirs.recv(1)
            looked.append(len(crowd.door.begun))
            ours.send(b".")

        running.add_reader(theirs, readable)
        ours.send(b".")
        for number, connection in enumerate(connections):
            connection.data_received(get(f"{number}"))
        while len(crowd.door.begun) < 100:  # noqa: ASYNC110  turns of the loop are counted
            await asyncio.sleep(0)
        running.remove_reader(theirs)
        ours.close()
        theirs.close()
        assert {32, 64, 96} <= set(looked), "a running stream had its token between any two parts"
        crowd.gone(connections)

    played(scene, loop)


@either_loop
def test_those_who_come_later_wait_behind_those_who_wait(loop: Any) -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(120)
        for number in range(80):
            connections[number].data_received(get(f"{number}"))
        await asyncio.sleep(0)
        for number in range(80, 120):
            connections[number].data_received(get(f"{number}"))
        await crowd.rest()
        assert crowd.door.begun == [str(number) for number in range(120)]
        crowd.gone(connections)

    played(scene, loop)


@either_loop
def test_a_request_whose_client_leaves_while_it_waits_begins_in_its_turn_and_is_cancelled(
    loop: Any,
) -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(100)
        crowd.door.held = {str(number) for number in range(40, 70)}
        for number, connection in enumerate(connections):
            connection.data_received(get(f"{number}"))
        for number in (40, 41):
            connections[number].data_received(get("never"))
        crowd.gone(connections[40:70])
        await crowd.rest()
        assert crowd.door.begun == [str(number) for number in range(100)]
        assert crowd.door.cancelled == [str(number) for number in range(40, 70)]
        crowd.gone(connections[:40] + connections[70:])

    played(scene, loop)


@either_loop
def test_a_request_that_was_cut_while_it_waited_takes_nobodys_place(loop: Any) -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(100)
        for number, connection in enumerate(connections):
            connection.data_received(get(f"{number}"))
        for connection in connections[40:70]:
            connection.cut()
        await crowd.rest()
        assert crowd.door.begun == [str(number) for number in range(100) if not 40 <= number < 70]
        # 32, then 32 of those that are left, then six: nobody's place was spent on who had gone.
        assert crowd.door.told.count("asked") == 3
        crowd.gone(connections)

    played(scene, loop)


@either_loop
def test_requests_of_one_connection_keep_their_order_while_the_first_waits(loop: Any) -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(BEGIN_MAX + 1)
        for connection in connections[:-1]:
            connection.data_received(get("others"))
        last = connections[-1]
        for name in ("a", "b", "c"):
            last.data_received(get(name))
        last.data_received(b"nonsense\r\n\r\n")
        await crowd.rest()
        assert crowd.door.begun[BEGIN_MAX:] == ["a", "b", "c", "invalid_http"]
        crowd.gone(connections)

    played(scene, loop)


@either_loop
def test_a_request_that_waits_is_answered_before_its_connection_is_closed(loop: Any) -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(BEGIN_MAX + 1)
        for connection in connections:
            connection.data_received(get("x"))
        last, pipe = connections[-1], crowd.pipes[-1]
        far = asyncio.get_running_loop().time() + 1000
        assert last.overdue(pipe, far) == last.overdue(pipe, far + 1000) == ""  # type: ignore[arg-type]  # as above
        crowd.listener.leave()
        assert not pipe.closed, "it does not idle: its request waits"
        await crowd.rest()
        assert crowd.door.begun == ["x"] * (BEGIN_MAX + 1)
        assert pipe.closed
        crowd.gone(connections)

    played(scene, loop)


def test_who_does_not_come_in_crowds_costs_the_loop_nothing() -> None:
    async def scene(crowd: Crowd) -> None:
        connections = await crowd.connected(BEGIN_MAX - 1)
        scheduled: list[Any] = []
        running = asyncio.get_running_loop()
        call_soon = running.call_soon
        budget = crowd.listener.budget

        def noted(callback: Any, *arguments: Any, context: Any = None) -> Any:
            scheduled.append(callback)
            return call_soon(callback, *arguments, context=context)

        running.call_soon = noted  # type: ignore[method-assign,assignment]  # of this loop alone
        for connection in connections:
            connection.data_received(get("x"))
        assert [one for one in scheduled if getattr(one, "__self__", None) is budget] == []
        connections[0].data_received(get("x"))
        await crowd.rest()
        assert budget.left == 1
        assert len(crowd.door.begun) == BEGIN_MAX
        crowd.gone(connections)

    played(scene, asyncio.new_event_loop)


@given(st.lists(st.integers(0, 90), max_size=8))
def test_nothing_is_lost_or_begun_twice_however_crowds_come(sizes: list[int]) -> None:
    class One:
        def __init__(self, number: int) -> None:
            self.number = number

        def begin(self) -> bool:
            if self.number % 7 == 3:
                return False
            begun.append(self.number)
            turn.append(self.number)
            return True

    begun: list[int] = []
    turn: list[int] = []

    async def play() -> None:
        budget, count = BeginBudget(), 0
        for size in sizes:
            for _ in range(size):
                one = One(count)
                count += 1
                if budget.spend():
                    one.begin()
                else:
                    budget.wait(one)
            for _ in range(2):
                turn.clear()
                await asyncio.sleep(0)
                assert len(turn) <= BEGIN_MAX
        while len(budget):
            turn.clear()
            await asyncio.sleep(0)
            assert len(turn) <= BEGIN_MAX
        assert begun == [number for number in range(count) if number % 7 != 3]

    asyncio.run(play())
