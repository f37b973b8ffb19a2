import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from smg_mesh.io.shared_state import state_keeper as keep
from smg_mesh.io.shared_state.state_files import StateFolder, When
from smg_mesh.io.shared_state.state_keeper import Recalled
from support.state.keeper_world import HOUR_MS, KeepWorld, on_disk, running, until


async def test_what_changed_is_remembered_by_the_next_life(tmp_path: Path) -> None:
    first = KeepWorld(tmp_path)
    first.boot = 77
    async with running(first) as world:
        world.change(settings_1=b"one", workers_2=b"two")
        await until(lambda: world.count("saved"))
        assert world.keeper.waiting == 0
    later = KeepWorld(tmp_path)
    later.wall_ms += HOUR_MS
    assert await later.open() == Recalled(2, HOUR_MS)
    assert (first.boots, later.boots) == ([0], [77])
    assert later.pieces.held == {"settings/1": b"one", "workers/2": b"two"}
    assert later.keeper.waiting == 0  # what was just read is on disk
    await later.keeper.close()


async def test_pieces_are_dumped_and_loaded_in_the_loops_own_thread(tmp_path: Path) -> None:
    async with running(KeepWorld(tmp_path)) as world:
        world.change(settings_1=b"one")
    async with running(KeepWorld(tmp_path)) as later:
        assert world.pieces.threads == later.pieces.threads == {threading.get_ident()}


async def test_changes_are_gathered_and_the_disk_is_left_alone_in_between(tmp_path: Path) -> None:
    async with running(KeepWorld(tmp_path, apart_ms=200)) as world:
        for number in range(40):
            world.change(settings_1=b"%d" % number)
            await asyncio.sleep(0.01)
        await until(lambda: world.keeper.waiting == 0 and world.count("saved"))
        assert world.count("saved") <= 4
    assert on_disk(tmp_path) == {"settings/1": b"39"}


async def test_the_end_saves_what_was_not(tmp_path: Path) -> None:
    async with running(KeepWorld(tmp_path, apart_ms=3_600_000)) as world:
        world.change(settings_1=b"one")
        assert world.count("saved") == 0
    assert world.count("saved") == 1
    assert on_disk(tmp_path) == {"settings/1": b"one"}
    await world.keeper.close()
    assert world.count("saved") == 1


async def test_a_quiet_node_leaves_its_disk_alone_but_for_one_word_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(KeepWorld(tmp_path)) as world:
        await asyncio.sleep(0.1)
        assert world.count("saved") == 0
    assert keep.WHEN_S == 3600
    monkeypatch.setattr(keep, "WHEN_S", 0.01)
    async with running(KeepWorld(tmp_path)) as world:
        world.wall_ms += HOUR_MS
        await until(lambda: world.count("saved"))
        found = (tmp_path / "when.json").read_text()
        assert str(world.wall_ms) in found


async def test_without_a_folder_nothing_is_kept_and_nothing_complains() -> None:
    world = KeepWorld(None)
    assert await world.open() == Recalled(0, None)
    world.change(settings_1=b"one")
    await world.keeper.run()
    await world.keeper.close()
    assert world.counters.all() == {}
    assert world.keeper.waiting == 0


async def test_many_pieces_are_written_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    write = StateFolder.write

    def watched(folder: StateFolder, pieces: Any, when: When) -> None:
        batches.append(len(pieces))
        write(folder, pieces, when)

    monkeypatch.setattr(StateFolder, "write", watched)
    async with running(KeepWorld(tmp_path)) as world:
        world.change(**{f"workers_{number}": b"x" for number in range(40)})
        await until(lambda: world.count("saved"))
    assert batches[:3] == [16, 16, 8]
    assert len(on_disk(tmp_path)) == 40


async def test_a_piece_that_cannot_be_dumped_does_not_keep_the_others_from_the_disk(
    tmp_path: Path,
) -> None:
    async with running(KeepWorld(tmp_path)) as world:
        world.pieces.fault = "settings/1"
        world.change(settings_1=b"one", settings_2=b"two")
        await until(lambda: world.count("saved"))
        assert world.counters.get("state_fault") == 1
    assert on_disk(tmp_path) == {"settings/2": b"two"}


# ── Damage ───────────────────────────────────────────────────────────────────


async def test_a_damaged_file_is_counted_and_said_and_the_rest_is_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(KeepWorld(tmp_path)) as world:
        world.change(settings_1=b"one", settings_2=b"two")
    (tmp_path / "settings-1.bin").write_bytes(b"smgstate\1 and then something else")
    async with running(KeepWorld(tmp_path)) as later:
        assert later.pieces.held == {"settings/2": b"two"}
        assert later.count("damaged") == 1
    assert (tmp_path / "settings-1.bin.damaged").exists()
    (said,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "settings-1.bin" in said.getMessage()


async def test_what_makes_no_sense_to_the_documents_is_set_aside_too(tmp_path: Path) -> None:
    async with running(KeepWorld(tmp_path)) as world:
        world.change(settings_1=b"one")
    later = KeepWorld(tmp_path)
    later.pieces.wrong = "disk"
    assert (await later.open()).pieces == 0
    assert later.count("damaged") == 1
    assert (tmp_path / "settings-1.bin.damaged").exists()
    assert not (tmp_path / "settings-1.bin").exists()
    await later.keeper.close()


async def test_a_piece_of_a_later_version_is_left_as_it_is(tmp_path: Path) -> None:
    async with running(KeepWorld(tmp_path)) as world:
        world.change(limits_1=b"one")
    later = KeepWorld(tmp_path)
    later.pieces.wrong = "name"
    assert (await later.open()).pieces == 0
    assert later.count("damaged") == 0
    await later.keeper.close()
    assert on_disk(tmp_path) == {"limits/1": b"one"}
