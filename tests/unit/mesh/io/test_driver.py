import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from smg_mesh.config import PROFILES, SwimOptions
from smg_mesh.io.counters import Counters
from smg_mesh.io.driver import EXCHANGES_MAX, STREAM_PINGS_MAX, TIMERS_A_TURN, Driver
from smg_mesh.io.network.datagrams import Datagrams
from smg_mesh.io.network.side_datagrams import write_letter
from smg_mesh.io.security.rejected import Rejected
from smg_mesh.swim.effects import (
    Effect,
    Isolated,
    Note,
    OpenExchange,
    SendDatagram,
    SetTimer,
    StreamAnswer,
    StreamPing,
    Timer,
)
from smg_mesh.swim.messages import Address

NOBODY = Address("127.0.0.1", 9)


class Core:
    """Writes down every input and answers with what the test put in `replies`."""

    def __init__(self) -> None:
        self.inputs: list[tuple[object, ...]] = []
        self.lags_ms: list[int] = []
        self.stale: set[str] = set()
        self.replies: dict[object, list[Effect] | Exception] = {}

    def _next(self, *given: object) -> list[Effect]:
        self.inputs.append(given)
        reply = self.replies.pop(given, None) or self.replies.pop(given[0], [])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def start(self, *, now_ms: int) -> list[Effect]:
        return self._next("start")

    def handle_datagram(self, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        return self._next("datagram", data)

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        return self._next("timer", timer.kind)

    def is_stale(self, timer: Timer) -> bool:
        return timer.kind in self.stale

    def handle_stall(self, lag_ms: int, *, now_ms: int) -> list[Effect]:
        self.lags_ms.append(lag_ms)
        return self._next("stall")

    def handle_stream_ping(self, nonce: int, *, answer: StreamAnswer, now_ms: int) -> list[Effect]:
        return self._next("ping", nonce, bool(answer))

    def handle_exchange_end(self, name: str, *, ok: bool, now_ms: int) -> list[Effect]:
        return self._next("exchange", name, ok)


class Reversed:
    """A seal for tests: the bytes backwards; what starts with x is refused."""

    def seal(self, packet: bytes) -> bytes:
        return packet[::-1]

    def open(self, datagram: bytes) -> bytes:
        if datagram.startswith(b"x"):
            raise Rejected("tag")
        return datagram[::-1]


class Peers:
    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = False
        self.said: list[tuple[object, ...]] = []

    async def ping(
        self, name: str, address: Address, boot: int, *, deadline_ms: int
    ) -> StreamAnswer:
        self.said.append((name, address, boot, deadline_ms))
        await self.gate.wait()
        if self.fails:
            raise ZeroDivisionError
        return StreamAnswer.HERE

    async def exchange(self, name: str, address: Address, why: str) -> bool:
        self.said.append((name, address, why))
        await self.gate.wait()
        if self.fails:
            raise ZeroDivisionError
        return True


class World:
    """A driver with all its neighbours made of straw, but for the socket."""

    def __init__(self) -> None:
        self.core = Core()
        self.peers = Peers()
        self.counters = Counters()
        self.told: list[Effect] = []
        self.letters: list[bytes] = []
        self.socket = Datagrams("127.0.0.1", 0, counters=self.counters)
        self.other = Datagrams("127.0.0.1", 0, counters=Counters())
        self.skipped_s = 0.0
        self.driver = self.driver_for(PROFILES["lan"])

    def driver_for(self, options: SwimOptions) -> Driver:
        return Driver(
            self.core,
            options,
            socket=self.socket,
            seals=Reversed(),
            peers=self.peers,
            tell=self.told.append,
            counters=self.counters,
            monotonic_s=lambda: time.monotonic() + self.skipped_s,
            letters=self.letters.append,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.driver.run())
            await asyncio.sleep(0)
            try:
                yield
            finally:
                task.cancel()

    def timer(self, kind: str, in_ms: int = 0) -> SetTimer:
        return SetTimer(Timer(kind, "", 1), self.driver.now_ms() + in_ms)

    def receive(self, content: bytes) -> None:
        assert self.other.send(content, Address("127.0.0.1", self.socket.port))

    async def heard(self, *given: object) -> None:
        await until(lambda: given in self.core.inputs)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.001)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    world.socket.close()
    world.other.close()


async def test_the_core_is_started_and_its_timers_come_back_in_order(world: World) -> None:
    world.core.replies["start"] = [world.timer("b", 20), world.timer("a", 10), world.timer("c", 20)]
    async with world.running():
        await world.heard("timer", "c")
    assert world.core.inputs == [("start",), ("timer", "a"), ("timer", "b"), ("timer", "c")]


async def test_a_timer_is_never_early(world: World) -> None:
    early: list[int] = []
    due = {f"{n}": world.timer(f"{n}", n) for n in range(30)}

    def handle(timer: Timer, *, now_ms: int) -> list[Effect]:
        early.append(now_ms - due[timer.kind].due_ms)
        return []

    world.core.handle_timer = handle  # type: ignore[method-assign]  # looks at the clock
    world.core.replies["start"] = list(due.values())
    async with world.running():
        await until(lambda: len(early) == len(due))
    assert min(early) >= 0


async def test_nobody_wakes_up_for_a_timer_that_does_nothing_any_more(world: World) -> None:
    async with world.running():
        world.driver.perform([world.timer("wait", 30), world.timer("later", 60)])
        world.core.stale.add("wait")
        world.receive(b"ack")
        await world.heard("timer", "later")
    assert world.core.inputs == [("start",), ("datagram", b"kca"), ("timer", "later")]
    assert world.driver.timers == 0


async def test_a_packet_is_opened_and_its_effects_done_in_order(world: World) -> None:
    world.core.replies[("datagram", b"ping")] = [
        Note("probe_ok", 2, "x"),
        SendDatagram(Address("127.0.0.1", world.other.port), b"abc"),
        Isolated(True),
    ]
    async with world.running():
        world.receive(b"gnip")
        await world.heard("datagram", b"ping")
        got: list[bytes] = []
        await until(
            lambda: world.other.drain(lambda data, _: got.append(data), packets_max=1) and got
        )
    assert got == [b"cba"]
    assert world.told == [Isolated(True)]
    assert world.counters.get("probe_ok", "x") == 2


async def test_what_the_keyring_refuses_never_reaches_the_core(world: World) -> None:
    async with world.running():
        world.receive(b"x1")
        world.receive(b"2x")
        await world.heard("datagram", b"x2")
    assert world.core.inputs == [("start",), ("datagram", b"x2")]
    assert world.counters.get("refused", "tag") == 1


async def test_letters_pass_the_core_by_and_are_sealed_and_sent_like_all_else(
    world: World,
) -> None:
    letter = write_letter("b", 7, b"rights")
    async with world.running():
        world.receive(letter[::-1])
        await until(lambda: world.letters == [letter])
        world.driver.post(letter, Address("127.0.0.1", world.other.port))
        got: list[bytes] = []
        await until(
            lambda: world.other.drain(lambda data, _: got.append(data), packets_max=1) and got
        )
    assert got == [letter[::-1]]
    assert world.core.inputs == [("start",)]


async def test_a_stall_is_told_first_then_the_socket_then_the_timers(world: World) -> None:
    async with world.running():
        await asyncio.sleep(0.01)
        world.receive(b"1")
        world.driver.perform([world.timer("due", 4)])
        time.sleep(0.01)  # noqa: ASYNC251 - the loop stands still
        world.skipped_s = 5
        await world.heard("timer", "due")
    assert world.core.inputs == [("start",), ("stall",), ("datagram", b"1"), ("timer", "due")]
    assert 4000 <= world.core.lags_ms[0] <= 10_000


async def test_a_stall_is_noticed_without_any_timer_or_packet(world: World) -> None:
    async with world.running():
        world.skipped_s = 3
        await until(lambda: len(world.core.inputs) == 2)
    assert world.core.inputs[1] == ("stall",)
    assert world.core.lags_ms[0] > 2500


async def test_answers_in_the_socket_are_read_before_timers_judge(world: World) -> None:
    async with world.running():
        for _ in range(20):
            world.core.inputs.clear()
            world.driver.perform([world.timer("verdict", 3)])
            time.sleep(0.004)  # noqa: ASYNC251 - the loop stands still
            world.receive(b"ack")
            await world.heard("timer", "verdict")
            assert world.core.inputs == [("datagram", b"kca"), ("timer", "verdict")]


async def test_a_lull_is_no_stall(world: World) -> None:
    world.driver = world.driver_for(PROFILES["wan"])
    async with world.running():
        await asyncio.sleep(0.3)
    assert world.core.inputs == [("start",)]


async def test_timers_that_breed_timers_leave_room_for_others(world: World) -> None:
    def handle(timer: Timer, *, now_ms: int) -> list[Effect]:
        world.core.inputs.append(("timer", timer.kind))
        return [SetTimer(timer, now_ms)]

    world.core.handle_timer = handle  # type: ignore[method-assign]  # one after another, for ever
    world.core.replies["start"] = [world.timer("again")] * (2 * TIMERS_A_TURN)
    async with world.running():
        await world.heard("timer", "again")
        world.receive(b"!")
        await world.heard("datagram", b"!")


async def test_a_failing_core_loses_one_packet_and_no_timer(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_mesh.io.driver.RETRY_TIMER_MS", 5)
    world.core.replies["datagram"] = ZeroDivisionError()
    world.core.replies["timer"] = ZeroDivisionError()
    async with world.running():
        world.receive(b"1")
        world.driver.perform([world.timer("chain")])
        await until(lambda: world.core.inputs.count(("timer", "chain")) == 2)
        world.receive(b"2")
        await world.heard("datagram", b"2")
    assert world.counters.get("core_fault") == 2
    assert caplog.text.count("ZeroDivisionError") == 2


async def test_a_step_of_somebody_else_may_fail_too(world: World) -> None:
    async with world.running():
        assert world.driver.step(lambda: [Isolated(True)])
        assert not world.driver.step(lambda: [Note("x", 1 // 0)])
    assert world.told == [Isolated(True)]
    assert world.counters.get("core_fault") == 1


async def test_stream_pings_run_beside_and_come_back_as_input(world: World) -> None:
    async with world.running():
        world.peers.gate.clear()
        world.driver.perform([StreamPing("b", 7, NOBODY, 11, 1000)])
        world.receive(b"1")
        await world.heard("datagram", b"1")
        world.peers.gate.set()
        await world.heard("ping", 11, True)
    assert world.peers.said == [("b", NOBODY, 7, 1000)]


async def test_exchanges_run_beside_and_their_end_is_told(world: World) -> None:
    async with world.running():
        world.driver.perform([OpenExchange("b", NOBODY, "join")])
        await world.heard("exchange", "b", True)
    assert world.peers.said == [("b", NOBODY, "join")]
    assert world.counters.get("exchange_ended", "ok") == 1


async def test_streams_that_fail_in_a_new_way_are_failures_and_no_more(world: World) -> None:
    world.peers.fails = True
    async with world.running():
        world.driver.perform([StreamPing("b", 7, NOBODY, 1, 9), OpenExchange("c", NOBODY, "up")])
        await world.heard("ping", 1, False)
        await world.heard("exchange", "c", False)
        world.receive(b"1")
        await world.heard("datagram", b"1")
    assert world.counters.get("stream_fault") == 2


async def test_more_streams_than_allowed_fail_at_once(world: World) -> None:
    world.peers.gate.clear()
    async with world.running():
        world.driver.perform(
            [StreamPing("b", 7, NOBODY, n, 9) for n in range(STREAM_PINGS_MAX + 1)]
        )
        world.driver.perform([OpenExchange(f"{n}", NOBODY, "up") for n in range(EXCHANGES_MAX + 1)])
        await world.heard("ping", STREAM_PINGS_MAX, False)
        await world.heard("exchange", str(EXCHANGES_MAX), False)
        assert len(world.peers.said) == STREAM_PINGS_MAX + EXCHANGES_MAX
        world.peers.gate.set()
        await world.heard("ping", 0, True)
        world.driver.perform([StreamPing("b", 7, NOBODY, 99, 9)])
        await world.heard("ping", 99, True)


async def test_a_flood_does_not_starve_the_timers(world: World) -> None:
    async with world.running():
        for _ in range(1000):
            world.receive(b"noise")
        world.driver.perform([world.timer("probe", 1)])
        await world.heard("timer", "probe")
        await until(lambda: len(world.core.inputs) == 1002)
        assert world.core.inputs.index(("timer", "probe")) < 1001


async def test_after_the_end_nothing_runs(world: World) -> None:
    world.peers.gate.clear()
    async with world.running():
        world.driver.perform([StreamPing("b", 7, NOBODY, 1, 9), world.timer("late", 1)])
        await asyncio.sleep(0)
    before = len(world.core.inputs)
    world.receive(b"1")
    world.driver.perform([StreamPing("b", 7, NOBODY, 1, 9), OpenExchange("c", NOBODY, "up")])
    await asyncio.sleep(0.02)
    assert len(world.core.inputs) == before
