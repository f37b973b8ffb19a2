import asyncio
import errno
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_mesh.escrow.founding_state import Ballot, FoundingState
from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.messages.effects import KeepFounding, KeepRoster, Persist
from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.io.counters import Counters
from smg_mesh.io.rights import mint_writer
from smg_mesh.io.rights.mint_writer import MintWriter, kept_until_ms
from support.mesh.mesh_cluster import until

KEY = "k#tokens/60000"
NOW_MS = 6_000_000
ROSTER = Roster(b"r" * 16, 1, ("a",), (1,))


class World:
    def __init__(self, folder: Path | None) -> None:
        self.counters = Counters()
        self.written: list[int] = []
        self.writer = MintWriter(
            folder, counters=self.counters, wall_ms=lambda: NOW_MS, written=self.written.append
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.writer.open()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.writer.run())
            yield
            task.cancel()
        await self.writer.close()


def persist(token: int, total: int) -> Persist:
    return Persist(token, (Minted(KEY, 100, total),))


async def remembered(folder: Path) -> object:
    return (await World(folder).writer.open()).minted


async def test_what_came_together_is_written_and_said_in_order(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        for token in range(5):
            world.writer.write(persist(token, token * 10))
        world.writer.write(KeepRoster(5, ROSTER))
        await until(lambda: len(world.written) == 6)
    assert world.written == list(range(6))
    assert world.counters.get("rights_file", "saved") == 1
    recalled = await World(tmp_path).writer.open()
    assert recalled.minted == {(KEY, 100): 40}
    assert recalled.roster == ROSTER


async def test_of_what_was_promised_the_last_is_kept_as_long_as_no_roster_is(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    states = [FoundingState(Ballot(counter, "a", 1)) for counter in (1, 2)]
    async with world.running():
        for token, state in enumerate(states):
            world.writer.write(KeepFounding(token, state))
        await until(lambda: len(world.written) == 2)
    recalled = await World(tmp_path).writer.open()
    assert (recalled.roster, recalled.founding) == (None, states[1])


async def test_without_a_folder_all_is_written_at_once_and_nothing_remembered() -> None:
    world = World(None)
    async with world.running():
        world.writer.write(persist(1, 10))
        await until(lambda: world.written == [1])
    assert (await world.writer.open()).minted is None


async def test_a_disk_that_fails_costs_the_votes_and_is_said_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failing: Callable[[int], None],
) -> None:
    world = World(tmp_path)
    async with world.running():
        world.writer.write(persist(1, 10))
        await until(lambda: world.written == [1])
        with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
            broken.setattr(os, "fsync", failing)
            world.writer.write(persist(2, 20))
            await until(lambda: world.counters.get("rights_file", "failed") == 1)
            world.writer.write(persist(3, 30))
            await until(lambda: world.counters.get("rights_file", "failed") == 2)
        assert world.written == [1]
        assert [one.message for one in caplog.records if "does not vote" in one.message] == [
            "the record of what was minted cannot be written, so this node does not vote on what is"
            " to be: [Errno 28] No space left on device"
        ]
        world.writer.write(persist(4, 40))
        await until(lambda: world.written == [1, 4])
    assert await remembered(tmp_path) == {(KEY, 100): 40}


async def test_a_folder_that_cannot_be_read_means_that_nothing_is_remembered(
    tmp_path: Path,
) -> None:
    (tmp_path / "rights").write_text("not a folder")
    world = World(tmp_path / "rights")
    assert (await world.writer.open()).minted is None
    assert world.counters.get("rights_file", "failed") == 1


async def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mint_writer, "WAITING_MAX", 2)
    world = World(tmp_path)
    for token in range(3):
        world.writer.write(persist(token, 1))
    assert world.counters.get("rights_file", "dropped") == 1
    async with world.running():
        await until(lambda: world.written == [0, 1])


@pytest.mark.parametrize(
    ("key", "window", "until_ms"),
    [
        ("k#tokens/60000", 100, 102 * 60_000 + mint_writer.KEPT_MS),
        ("k#concurrent/0", 0, NOW_MS + mint_writer.LEVEL_KEPT_MS),
        ("k#concurrent/0\x1fa", 7 << 32, NOW_MS + mint_writer.LEVEL_KEPT_MS),
        ("nonsense", 7, NOW_MS + mint_writer.LEVEL_KEPT_MS),
        ("!lent\x1fb\x1fk#concurrent/0", 7, mint_writer.FOR_GOOD_MS),
        ("!lent", 0, mint_writer.FOR_GOOD_MS),
    ],
)
def test_a_row_is_kept_until_its_window_and_the_next_are_over(
    key: str, window: int, until_ms: int
) -> None:
    assert kept_until_ms(Minted(key, window, 1), NOW_MS) == until_ms


def test_what_is_not_lent_any_more_is_kept_for_a_day() -> None:
    row = Minted("!lent\x1fb\x1fk#concurrent/0", 7, 0)
    assert kept_until_ms(row, NOW_MS) == NOW_MS + mint_writer.LEVEL_KEPT_MS


@pytest.fixture
def failing() -> Callable[[int], None]:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    return full
