import asyncio
import errno
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from smg_mesh.io.shared_state import state_keeper as keep
from smg_mesh.io.shared_state.state_files import StateFolder, When
from support.state.keeper_world import WEEK_MS, KeepWorld, on_disk, running, until

# ── Disks ────────────────────────────────────────────────────────────────────


async def test_a_full_disk_costs_the_memory_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with running(KeepWorld(tmp_path)) as world:
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            world.change(settings_1=b"one")
            await until(lambda: world.count("failed") >= 3)
            assert world.keeper.waiting == 1
        await until(lambda: world.count("saved"))
        assert world.keeper.waiting == 0
    assert on_disk(tmp_path) == {"settings/1": b"one"}
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert "going on without" in warning.getMessage()
    assert "No space left on device" in warning.getMessage()


async def test_a_disk_that_stays_full_is_asked_less_and_less_often(tmp_path: Path) -> None:
    world = KeepWorld(tmp_path, apart_ms=10_000)
    pauses_s = []
    for _ in range(8):
        world.keeper._failed("cannot be written", OSError(errno.ENOSPC, "full"))
        pauses_s.append(world.keeper._pause_s())
    assert pauses_s == [10, 20, 40, 80, 160, 300, 300, 300]


async def test_a_folder_that_cannot_be_made_costs_the_memory_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    async with running(KeepWorld(tmp_path / "file" / "state")) as world:
        world.change(settings_1=b"one")
        await until(lambda: world.count("failed") >= 3)
    assert len(caplog.records) == 1


async def test_a_disk_that_comes_late_is_read_then_and_what_it_holds_is_merged(
    tmp_path: Path,
) -> None:
    async with running(KeepWorld(tmp_path / "disk" / "state")) as world:
        world.change(settings_1=b"old", settings_2=b"two")
    (tmp_path / "disk").rename(tmp_path / "unplugged")
    (tmp_path / "disk").write_text("in the way")
    async with running(KeepWorld(tmp_path / "disk" / "state")) as world:
        world.change(settings_3=b"three")
        await until(lambda: world.count("failed"))
        (tmp_path / "disk").unlink()
        (tmp_path / "unplugged").rename(tmp_path / "disk")
        await until(lambda: world.count("saved"))
        assert world.pieces.held == {
            "settings/1": b"old",
            "settings/2": b"two",
            "settings/3": b"three",
        }
        assert world.keeper.waiting == 0
    assert on_disk(tmp_path / "disk" / "state") == world.pieces.held


async def test_a_disk_that_comes_late_and_is_too_old_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(KeepWorld(tmp_path / "disk" / "state")) as world:
        world.change(settings_1=b"old")
    (tmp_path / "disk").rename(tmp_path / "unplugged")
    (tmp_path / "disk").write_text("in the way")
    late = KeepWorld(tmp_path / "disk" / "state")
    late.wall_ms += WEEK_MS + 1
    async with running(late):
        late.change(settings_3=b"three")
        await until(lambda: late.count("failed"))
        (tmp_path / "disk").unlink()
        (tmp_path / "unplugged").rename(tmp_path / "disk")
        await until(lambda: late.count("saved"))
        assert late.pieces.held == {"settings/3": b"three"}
    assert "too old" in caplog.text


async def test_a_folder_of_another_node_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(KeepWorld(tmp_path)) as first, running(KeepWorld(tmp_path)) as second:
        first.change(settings_1=b"mine")
        second.change(settings_1=b"yours")
        await until(lambda: first.count("saved") and second.count("failed"))
    assert on_disk(tmp_path) == {"settings/1": b"mine"}
    assert "another node keeps its state" in caplog.text


class HangingDisk:
    """Lets writes hang until it is released."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.release = threading.Event()
        self.begun = threading.Event()
        self.writes = 0
        write = StateFolder.write

        def hang(folder: StateFolder, pieces: Any, when: When) -> None:
            self.writes += 1
            self.begun.set()
            self.release.wait(60)
            write(folder, pieces, when)

        patched.setattr(StateFolder, "write", hang)


async def test_a_disk_that_hangs_holds_up_nobody_and_gets_one_write_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep, "SAVE_TIMEOUT_S", 0.02)
    disk = HangingDisk(monkeypatch)
    try:
        async with running(KeepWorld(tmp_path)) as world:
            world.change(settings_1=b"old")
            await until(lambda: world.count("failed") >= 2)
            world.change(settings_1=b"new")
            await until(lambda: world.count("failed") >= 3)
            assert disk.writes == 1
            disk.release.set()
            await until(lambda: world.count("saved"))
    finally:
        disk.release.set()
    assert on_disk(tmp_path) == {"settings/1": b"new"}


async def test_a_node_that_stops_does_not_wait_for_a_disk_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep, "SAVE_TIMEOUT_S", 0.02)
    monkeypatch.setattr(keep, "CLOSE_TIMEOUT_S", 0.02)
    disk = HangingDisk(monkeypatch)
    try:
        async with asyncio.timeout(20), running(KeepWorld(tmp_path)) as world:
            world.change(settings_1=b"one")
            await until(disk.begun.is_set)
        assert world.keeper.waiting == 1
    finally:
        disk.release.set()
        await until(lambda: world.keeper._threads.running == 0)


async def test_a_write_under_way_at_the_end_is_waited_for_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HangingDisk(monkeypatch)
    async with running(KeepWorld(tmp_path)) as world:
        world.change(settings_1=b"one")
        await until(disk.begun.is_set)
        world.change(settings_1=b"two", settings_2=b"more")
        asyncio.get_running_loop().call_later(0.05, disk.release.set)
    assert on_disk(tmp_path) == {"settings/1": b"two", "settings/2": b"more"}


async def test_a_disk_that_hangs_at_the_start_is_gone_on_without_and_taken_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(KeepWorld(tmp_path)) as world:
        world.change(settings_1=b"one")
    release = threading.Event()
    opening = StateFolder.open

    def hang(folder: StateFolder) -> Any:
        release.wait(60)
        return opening(folder)

    monkeypatch.setattr(keep, "SAVE_TIMEOUT_S", 0.02)
    monkeypatch.setattr(StateFolder, "open", hang)
    try:
        async with running(KeepWorld(tmp_path)) as late:
            assert late.count("failed") == 1
            assert late.pieces.held == {}
            release.set()
            monkeypatch.setattr(keep, "SAVE_TIMEOUT_S", 10.0)
            late.change(settings_2=b"two")
            await until(lambda: late.count("saved"))
            assert late.pieces.held == {"settings/1": b"one", "settings/2": b"two"}
    finally:
        release.set()
