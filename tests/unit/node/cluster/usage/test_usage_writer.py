import asyncio
import errno
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import pytest

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import Line
from smg_node.cluster.usage import usage_writer as usage_keep
from smg_node.cluster.usage.disk_thread import DiskThread
from smg_node.cluster.usage.usage_log import UsageLog
from smg_node.cluster.usage.usage_writer import UsageKeeper
from smg_node.core.prices.price_list import PriceList
from support.http.raw_http import until
from support.http.request_usage import MIDNIGHT, Wall, outcome


class Disk(UsageLog):
    """One that fails when a test says so."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "a")
        self.fails = False
        self.tries = 0
        self.forgot: list[int] = []

    def append(self, lines: Sequence[Line]) -> None:
        self.tries += 1
        if self.fails:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(lines)

    def forget(self, today: int) -> list[str]:
        self.forgot.append(today)
        return super().forget(today)


class Kept:
    """A keeper and what is around it."""

    def __init__(self, folder: Path) -> None:
        self.wall = Wall()
        self.book = UsageBook(PriceList(), now_ms=self.wall.now_ms, life="a")
        self.disk = Disk(folder)
        self.keeper = UsageKeeper(
            self.book, self.disk, now_ms=self.wall.now_ms, write_every_s=0.001, retry_s=0.001
        )

    def on_disk(self) -> int:
        lines = self.disk.read(MIDNIGHT, MIDNIGHT + 48)
        return sum(line.requests for line in lines)

    async def until_on_disk(self, requests: int) -> None:
        await until(lambda: self.on_disk() == requests)


@asynccontextmanager
async def kept(folder: Path) -> AsyncIterator[Kept]:
    one = Kept(folder)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.keeper.run())
        yield one
        task.cancel()
    await one.keeper.close()


async def test_what_is_used_is_on_the_disk_soon_and_an_idle_node_writes_nothing(
    tmp_path: Path,
) -> None:
    async with kept(tmp_path / "u") as one:
        await asyncio.sleep(0.02)
        assert (one.disk.tries, one.disk.forgot) == (0, [])
        one.book.record(outcome())
        await one.until_on_disk(1)
        for _ in range(3):
            one.book.record(outcome())
        await one.until_on_disk(4)
        tries = one.disk.tries
        await asyncio.sleep(0.02)
        assert one.disk.tries == tries


async def test_a_disk_that_fails_is_said_once_and_tried_until_it_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with kept(tmp_path) as one:
        one.disk.fails = True
        one.book.record(outcome())
        await until(lambda: one.keeper.failures >= 3)
        one.book.record(outcome())
        one.disk.fails = False
        await one.until_on_disk(2)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "what requests used cannot be written (no space left on device): kept in memory, and tried again",
        "what requests used is written again",
    ]


async def test_what_was_used_last_is_written_at_the_end(tmp_path: Path) -> None:
    one = Kept(tmp_path)
    one.book.record(outcome())
    await one.keeper.close()
    assert one.on_disk() == 1
    other = UsageLog(tmp_path, "b")
    other.append([])
    with pytest.raises(OSError, match="ends"):
        await one.keeper.read(0, 1)


async def test_another_process_of_the_same_name_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    former = UsageLog(tmp_path, "z")
    former.append([Line("z.1", MIDNIGHT, "acme", "k", "m", 5)])
    async with kept(tmp_path) as one:
        one.book.record(outcome())
        await until(lambda: one.keeper.failures > 0)
        former.close()
        await one.until_on_disk(6)
    assert "another process of this name writes there" in caplog.text


async def test_a_disk_that_hangs_is_given_up_and_keeps_nobody_from_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Kept(tmp_path)
    one.keeper = UsageKeeper(one.book, one.disk, now_ms=one.wall.now_ms, read_s=0.01)
    hangs = Event()
    monkeypatch.setattr(one.disk, "read", lambda first, end: hangs.wait(30))
    monkeypatch.setattr(usage_keep, "CLOSE_S", 0.01)
    try:
        with pytest.raises(OSError, match="does not answer"):
            await one.keeper.read(0, 24)
        one.book.record(outcome())
        await one.keeper.close()
        assert one.disk.tries == 0
    finally:
        hangs.set()


async def test_what_a_thread_raises_is_raised_to_the_caller_and_the_next_call_works() -> None:
    thread = DiskThread("test")

    def fail() -> int:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        await thread.call(fail)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(thread.call(lambda at=at: at)) for at in range(20)]  # type: ignore[misc]  # bound now
    assert [call.result() for call in calls] == list(range(20))
    thread.end()


async def test_old_days_are_removed_once_a_day(tmp_path: Path) -> None:
    one = Kept(tmp_path)
    for hours in (0, 5, 19, 1):
        one.wall.pass_hours(hours)
        one.book.record(outcome())
        assert await one.keeper.write()
    assert one.disk.forgot == [MIDNIGHT // 24, MIDNIGHT // 24 + 1]
    await one.keeper.close()
