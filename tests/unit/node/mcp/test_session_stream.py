"""The stream by GET of one session over several processes: one has it, the next takes it when that one is gone."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from smg_node.mcp.doors.door import Door, Exchange, OnProgress
from smg_node.mcp.failures import Failure, bare_status
from smg_node.mcp.revisions import NEWEST_HANDSHAKE
from smg_node.mcp.session.session import Notification, Request, RequestIds, Session
from smg_node.mcp.session.shared_session import SharedSession
from smg_node.mcp.session_stream import SessionStream
from support.mcp.faulty_server import until
from support.mcp.session_world import SessionWorld

IDLE_MS = 300_000


class OneStream:
    """A server that gives its stream to one at a time, as the door of a process sees it."""

    holders: list["OneStream"]

    def __init__(self, holders: list["OneStream"], status: int = 0) -> None:
        self.closed = ""
        self.holders = holders
        self.status = status
        self.asked = 0

    async def ask(self, session: Session, request: Request, on_progress: OnProgress) -> Exchange:
        raise AssertionError("nothing is asked")

    async def tell(self, session: Session, notification: Notification) -> Failure | None:
        return None

    async def listen(self, session: Session, begun: Callable[[], None]) -> Failure | None:
        self.asked += 1
        if self.status or self.holders:
            return bare_status(self.status or 409)
        self.holders.append(self)
        begun()
        try:
            while not session.ended:  # noqa: ASYNC110  # as a stream does that is looked at
                await asyncio.sleep(0.01)
        finally:
            self.holders.remove(self)
        return None

    async def end(self, session: Session) -> None:
        session.ended = True

    async def close(self, session: Session | None) -> None:
        self.closed = "closed"


class Process:
    """One process of a session."""

    def __init__(
        self, world: SessionWorld, name: str, group: asyncio.TaskGroup, door: Door
    ) -> None:
        self.shared = SharedSession(world.records(name), "0" * 32, IDLE_MS)
        self.session = Session(NEWEST_HANDSHAKE, RequestIds(name), by_http=True)
        self.session.session_id = "s-1"
        self.tasks: list[asyncio.Task[None]] = []

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            self.tasks.append(group.create_task(work))

        self.stream = SessionStream(self.shared, spawn)
        self.shared.used(self.session, lists=True)
        self.stream.follow(door, self.session)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smg_node.mcp.session_stream.LOOK_S", 0.02)
    monkeypatch.setattr("smg_node.mcp.session_stream.TELL_CHANGE_S", 0.05)


async def test_the_second_waits_for_the_stream_and_has_it_when_the_first_lets_go() -> None:
    world, holders = SessionWorld(), list[OneStream]()
    doors = [OneStream(holders) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        a = Process(world, "a", group, doors[0])
        await until(lambda: holders == [doors[0]])
        b = Process(world, "b", group, doors[1])
        await asyncio.sleep(0.1)
        assert doors[1].asked == 0
        a.session.ended = True
        await until(lambda: holders == [doors[1]])
        b.session.ended = True


async def test_a_stream_whose_process_died_is_asked_for_until_the_server_has_noticed() -> None:
    world, holders = SessionWorld(), list[OneStream]()
    doors = [OneStream(holders) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        a = Process(world, "a", group, doors[0])
        await until(lambda: holders == [doors[0]])
        world.names.remove("a")
        b = Process(world, "b", group, doors[1])
        await until(lambda: doors[1].asked > 2)
        a.stream.stop()
        await until(lambda: holders == [doors[1]])
        b.session.ended = True


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_without_such_a_stream_is_asked_once(status: int) -> None:
    door, world = OneStream([], status), SessionWorld()
    async with asyncio.TaskGroup() as group:
        Process(world, "a", group, door)
    assert (door.asked, world.writes) == (1, 1)


async def test_many_changes_are_told_now_and_then_and_the_last_of_them_too() -> None:
    world, holders = SessionWorld(), list[OneStream]()
    async with asyncio.TaskGroup() as group:
        a = Process(world, "a", group, OneStream(holders))
        await until(lambda: bool(holders))
        before = world.writes
        a.stream.tell_change(a.session)
        await until(lambda: world.writes == before + 1)
        for _ in range(100):
            a.stream.tell_change(a.session)
        await until(lambda: world.writes == before + 2)
        a.session.ended = True
    other = SharedSession(world.records("b"), "0" * 32, IDLE_MS)
    record = other.find()
    assert record is not None
    assert record.changes == 2
