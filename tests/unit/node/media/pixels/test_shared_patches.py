"""The patch cache of several processes: what one puts all get, within one bound, whatever becomes of any of them."""

import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smg_node.media.family import PicturePlan
from smg_node.media.pixels import shared_patches
from smg_node.media.pixels.patch_cache import ENTRY_OVERHEAD
from smg_node.media.pixels.shared_patches import PREFIX, SharedPatches, folder_of_node
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_service import MediaService
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared.media import MEDIA_METRICS

PLAN = PicturePlan(1, 1, 1, 1, 1, (1,), (1,))
FORKS = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def _no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_patches, "SPARE_BYTES", 0)


def name(at: int) -> str:
    return f"{at:064x}"


def pixels(at: int, size: int = 1_000) -> Any:
    return np.full((size // 10, 10), at % 251, np.uint8)


def folder(tmp_path: Path) -> Path:
    return tmp_path / f"{PREFIX}one"


def test_what_one_process_puts_another_gets(tmp_path: Path) -> None:
    one, two = (SharedPatches(folder(tmp_path), 1 << 20, processes=2) for _ in range(2))
    assert two.get(name(1)) is None
    made = pixels(1)
    assert one.put(name(1), PLAN, made).patches is made
    found = two.get(name(1))
    assert found is not None
    assert (found.patches == made).all()
    assert found.patches.shape == (100, 10)
    with pytest.raises(ValueError, match="read-only"):
        found.patches[0, 0] = 1
    assert two.counts()[:3] == (1, 1, 0)
    held = [each.counts().held_bytes for each in (one, two)]
    assert sum(held) == pytest.approx(1_064 + ENTRY_OVERHEAD, abs=2)


def test_the_least_recently_used_go_first_and_what_is_read_stays_readable(tmp_path: Path) -> None:
    room = 3 * (1_064 + ENTRY_OVERHEAD)
    one, two = (SharedPatches(folder(tmp_path), room) for _ in range(2))
    for at in range(3):
        one.put(name(at), PLAN, pixels(at))
        os.utime(folder(tmp_path) / name(at), ns=(at, at))
    reading = two.get(name(0))
    assert reading is not None
    two.put(name(3), PLAN, pixels(3))
    assert [at for at in range(4) if one.get(name(at)) is not None] == [0, 2, 3]
    one.resize(0)
    assert two.get(name(0)) is None
    assert (reading.patches == 0).all()


def test_what_is_larger_than_the_bound_is_not_kept(tmp_path: Path) -> None:
    cache = SharedPatches(folder(tmp_path), 1_000)
    cache.put(name(1), PLAN, pixels(1))
    assert cache.counts().entries == 0
    none = SharedPatches(folder(tmp_path), 0)
    none.put(name(1), PLAN, pixels(1))
    assert none.get(name(1)) is None


def test_a_full_memory_keeps_nothing_and_nobody_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = SharedPatches(folder(tmp_path), 1 << 20)
    monkeypatch.setattr(shared_patches, "_free_bytes", lambda _: 1_000)
    cache.put(name(1), PLAN, pixels(1))
    assert cache.get(name(1)) is None


@pytest.mark.parametrize("garbage", [b"", b"SMGP", b"x" * 64, b"SMGP" + b"\xff" * 60, b"x" * 500])
def test_a_file_that_is_none_of_ours_is_no_picture(tmp_path: Path, garbage: bytes) -> None:
    cache = SharedPatches(folder(tmp_path), 1 << 20)
    (folder(tmp_path) / name(1)).write_bytes(garbage)
    assert cache.get(name(1)) is None
    cache.put(name(1), PLAN, pixels(1))
    assert cache.get(name(1)) is not None
    assert cache.get("../alive") is None


def _write_for_ever(where: Path, started: Any) -> None:
    cache = SharedPatches(where, 40_000)
    at = os.getpid() * 1_000_003
    while True:
        at += 1
        cache.put(name(at), PLAN, pixels(at, 9_000))
        started.set()


def test_processes_that_are_killed_while_they_write_leave_a_cache_that_works(
    tmp_path: Path,
) -> None:
    where = folder(tmp_path)
    mine = SharedPatches(where, 40_000)
    for _ in range(6):
        started = FORKS.Event()
        writers = [FORKS.Process(target=_write_for_ever, args=(where, started)) for _ in range(2)]
        for each in writers:
            each.start()
        assert started.wait(20)
        for at in range(20):
            mine.put(name(at), PLAN, pixels(at, 9_000))
        for each in writers:
            assert each.pid is not None
            os.kill(each.pid, signal.SIGKILL)
            each.join(20)
        for path in where.iterdir():
            if len(path.name) == 64:
                found = mine.get(path.name)
                assert found is not None
                assert found.patches.shape == (900, 10)
                assert len(set(found.patches.ravel().tolist())) == 1
        assert mine.counts().held_bytes <= 40_000
    mine.close()
    assert not where.exists(), "the last one leaves nothing"


def test_threads_and_processes_keep_within_the_bound_together(tmp_path: Path) -> None:
    caches = [SharedPatches(folder(tmp_path), 30_000) for _ in range(3)]

    def work(of: int) -> None:
        for at in range(60):
            caches[of % 3].put(name(of * 1_000 + at), PLAN, pixels(at, 3_000))
            caches[(of + 1) % 3].get(name(of * 1_000 + at))

    threads = [threading.Thread(target=work, args=(of,)) for of in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    sizes = [path.stat().st_size for path in folder(tmp_path).iterdir() if len(path.name) == 64]
    assert 0 < sum(sizes) + len(sizes) * ENTRY_OVERHEAD <= 30_000


def test_folders_of_the_dead_are_removed_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    lives = SharedPatches(tmp_path / f"{PREFIX}lives", 1 << 20)
    lives.put(name(1), PLAN, pixels(1))
    dead = tmp_path / f"{PREFIX}dead"
    dead.mkdir()
    (dead / "alive").touch()
    (dead / name(1)).write_bytes(b"x")
    (tmp_path / "other").mkdir()
    one = SharedPatches(tmp_path / f"{PREFIX}new", 1 << 20)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "other", f"{PREFIX}lives", f"{PREFIX}new",
    ]  # fmt: skip
    assert lives.get(name(1)) is not None
    one.close()
    one.close()
    two = SharedPatches(tmp_path / f"{PREFIX}lives", 1 << 20)
    lives.close()
    assert two.get(name(1)) is not None, "another process is there"
    two.close()
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_a_folder_is_of_one_start_of_one_process(tmp_path: Path) -> None:
    mine = folder_of_node(os.getpid(), tmp_path)
    assert mine == folder_of_node(os.getpid(), tmp_path)
    assert mine != folder_of_node(os.getppid(), tmp_path)
    assert folder_of_node(2**22 + 1, tmp_path) is None


def test_a_memory_that_is_too_small_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"too few for media\.cache_bytes"):
        SharedPatches(folder(tmp_path), 1 << 60)
    assert not folder(tmp_path).exists()


def test_each_process_keeps_its_own_where_there_is_no_such_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = MediaOptions(cache_bytes=1 << 60, processes=4, shared_folder=str(folder(tmp_path)))
    cells = Cells(MEDIA_METRICS, before=lambda: None)
    none: Any = None
    service = MediaService(options, lambda _: (), none, cells=cells, monotonic_s=lambda: 0.0)
    try:
        assert "each process keeps pictures of its own" in caplog.text
        assert service.kept_bytes == 0
        service.retune(MediaOptions(cache_bytes=1 << 20, processes=4))
    finally:
        service.close()
