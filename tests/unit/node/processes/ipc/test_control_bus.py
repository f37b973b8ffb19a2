import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.ipc.ipc_link import AnswerError, LinkCutError
from support.http.raw_http import until


class World:
    """A bus, the names of those that live, and what was heard."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "bus")
        self.living = {"1-11": None, "2-22": None}
        self.heard: list[tuple[str, ...]] = []
        self.bus = self.make()

    def make(self, *expected: str) -> Bus:
        bus = Bus(self.path, expected=expected, alive=self.living.__contains__)
        bus.opened(lambda process: self.heard.append(("opened", process)))
        bus.closed(lambda process: self.heard.append(("closed", process)))
        bus.died(lambda process: self.heard.append(("died", process)))
        bus.on("said", lambda process, payload: self.heard.append((process, payload.decode())))

        async def echo(process: str, payload: bytes) -> bytes:
            if payload == b"bad":
                raise ValueError("no echo")
            return payload + process.encode()

        bus.answer("echo", echo)
        return bus


@asynccontextmanager
async def turning(*runs: Bus | Uplink) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.run()) for one in runs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.bus.open()
    async with turning(world.bus):
        yield world
        world.bus.close()


async def test_what_is_told_comes_in_order_and_after_the_name(world: World) -> None:
    uplink = Uplink(world.path, "1-11")
    uplink.opened(lambda: uplink.tell("said", b"first"))
    async with turning(uplink):
        await until(lambda: world.bus.processes)
        for number in range(50):
            uplink.tell("said", str(number).encode())
        await until(lambda: len(world.heard) == 52)
    expected = [("opened", "1-11"), ("1-11", "first"), *(("1-11", str(n)) for n in range(50))]
    assert world.heard[:52] == expected


async def test_both_ends_answer_and_say_why_they_cannot(world: World) -> None:
    uplink = Uplink(world.path, "1-11")

    async def twice(payload: bytes) -> bytes:
        return payload * 2

    uplink.answer("twice", twice)
    async with turning(uplink):
        await until(lambda: world.bus.processes)
        assert await uplink.ask("echo", b"hi ") == b"hi 1-11"
        assert await world.bus.ask("1-11", "twice", b"ab") == b"abab"
        with pytest.raises(AnswerError, match="no echo"):
            await uplink.ask("echo", b"bad")
        with pytest.raises(AnswerError, match="does not answer sums"):
            await uplink.ask("sums", b"")
        with pytest.raises(LinkCutError):
            await world.bus.ask("9-99", "twice", b"")


async def test_who_waits_for_an_answer_hears_that_the_link_is_cut(world: World) -> None:
    uplink = Uplink(world.path, "1-11")
    asked = asyncio.Event()

    async def never(_payload: bytes) -> bytes:
        asked.set()
        await asyncio.Event().wait()
        return b""

    uplink.answer("never", never)
    async with turning(uplink), asyncio.TaskGroup() as group:
        await until(lambda: world.bus.processes)
        waiting = group.create_task(_cut(world.bus))
        await asked.wait()
        uplink.begin_anew()
        assert await waiting


async def _cut(bus: Bus) -> bool:
    with pytest.raises(LinkCutError):
        await bus.ask("1-11", "never", b"")
    return True


async def test_a_link_that_is_cut_says_nothing_of_its_process_and_a_death_does(
    world: World,
) -> None:
    uplink = Uplink(world.path, "1-11")
    async with turning(uplink):
        await until(lambda: world.bus.processes)
        uplink.begin_anew()
        await until(lambda: ("closed", "1-11") in world.heard)
        await until(lambda: world.bus.processes)
    await until(lambda: not world.bus.processes)
    assert world.bus.expected == ("1-11",)
    assert not [one for one in world.heard if one[0] == "died"]
    del world.living["1-11"]
    await until(lambda: ("died", "1-11") in world.heard)
    assert not world.bus.expected


async def test_a_control_process_that_takes_another_ones_place_is_found(world: World) -> None:
    uplink = Uplink(world.path, "1-11")
    opened: list[str] = []
    uplink.opened(lambda: opened.append("opened"))
    uplink.closed(lambda: opened.append("closed"))
    async with turning(uplink):
        await until(lambda: world.bus.processes)
        world.bus.close()
        await until(lambda: not uplink.linked)
        other = world.make("1-11", "2-22")
        await other.open()
        async with turning(other):
            await until(lambda: uplink.linked and other.processes)
            assert (other.processes, other.expected) == (("1-11",), ("2-22",))
            other.close()
    assert opened[:3] == ["opened", "closed", "opened"]


async def test_what_does_not_speak_our_language_is_cut_and_harms_nobody(world: World) -> None:
    reader, writer = await asyncio.open_unix_connection(world.path)
    writer.write(b"GET / HTTP/1.1\r\n\r\n" * 3)
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
    uplink = Uplink(world.path, "1-11")
    async with turning(uplink):
        await until(lambda: world.bus.processes)
        assert await uplink.ask("echo", b"") == b"1-11"
