import asyncio
import logging
import time
from collections.abc import Callable

import pytest

from smg_mesh.io.counters import Counters
from smg_mesh.io.rights import wakeup as pulse
from smg_mesh.io.rights.wakeup import WakeupTimer


class World:
    def __init__(self) -> None:
        self.beats_s: list[float] = []
        self.counters = Counters()
        self.wrong: list[Exception] = []
        self.pulse = WakeupTimer(self.beat, monotonic_s=time.monotonic, counters=self.counters)

    def beat(self) -> None:
        self.beats_s.append(time.monotonic())
        if self.wrong:
            raise self.wrong.pop()

    def at(self, after_ms: int) -> None:
        self.pulse.at(self.now_ms() + after_ms)

    def now_ms(self) -> int:
        return int(time.monotonic() * 1000)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.002)


async def test_nobody_is_called_who_did_not_ask() -> None:
    world = World()
    world.pulse.start()
    await asyncio.sleep(0.03)
    assert world.beats_s == []


async def test_the_soonest_of_all_wishes_counts_and_the_call_is_never_early() -> None:
    world = World()
    world.pulse.start()
    due_ms = world.now_ms() + 20
    world.pulse.at(due_ms + 5_000)
    world.pulse.at(due_ms)
    world.pulse.at(due_ms + 3)
    await until(lambda: world.beats_s)
    assert int(world.beats_s[0] * 1000) >= due_ms
    await asyncio.sleep(0.05)
    assert len(world.beats_s) == 1  # whoever wants more says so again
    world.pulse.stop()


async def test_what_was_asked_for_before_the_start_is_not_forgotten() -> None:
    world = World()
    world.at(1)
    await asyncio.sleep(0.02)
    assert world.beats_s == []
    world.pulse.start()
    await until(lambda: world.beats_s)


async def test_after_the_end_nobody_is_called() -> None:
    world = World()
    world.pulse.start()
    world.at(1)
    world.pulse.stop()
    world.at(1)
    await asyncio.sleep(0.03)
    assert world.beats_s == []


async def test_a_call_is_never_made_from_within_what_asks_for_it() -> None:
    world = World()
    world.pulse.start()
    world.at(-1000)
    assert world.beats_s == []
    await until(lambda: world.beats_s)


async def test_a_call_that_fails_is_counted_and_made_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pulse, "RETRY_MS", 5)
    world = World()
    world.wrong = [ValueError("a mistake"), ValueError("another")]
    world.pulse.start()
    world.at(1)
    await until(lambda: len(world.beats_s) == 3)
    await asyncio.sleep(0.03)
    assert len(world.beats_s) == 3
    assert world.counters.get("state_fault") == 2
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


async def test_mistakes_are_counted_for_ever_and_logged_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()

    def fail() -> None:
        raise RuntimeError("again")

    assert [world.pulse.guard(fail) for _ in range(50)] == [False] * 50
    assert world.counters.get("state_fault") == 50
    assert len(caplog.records) == 20
    assert world.pulse.guard(lambda: None)
