"""Tensors in shared memory: there for the engine, gone when their call is over, swept after a process that ended."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from smg_node.engines.shared_memory import FOLDER, PIECES_AT_ONCE, SharedMemory, namespace

CHILD = """
import sys, time
from pathlib import Path
from smg_node.engines.shared_memory import SharedMemory
memory = SharedMemory(Path(sys.argv[1]))
print(memory.write([b"left behind"]), memory.write([b"as well"]), flush=True)
time.sleep(60)
"""


@pytest.fixture
def memory(tmp_path: Path) -> SharedMemory:
    return SharedMemory(tmp_path)


def there(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def written(memory: SharedMemory, *pieces: bytes) -> str:
    name = memory.write(pieces)
    assert name is not None
    return name


def test_a_file_has_the_bytes_and_is_its_owner_s_only(memory: SharedMemory, tmp_path: Path) -> None:
    name = written(memory, b"one", b"", b"two")
    assert (tmp_path / name).read_bytes() == b"onetwo"
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert name != written(memory, b"one")


def test_many_buffers_of_any_kind_are_one_file(memory: SharedMemory, tmp_path: Path) -> None:
    pieces = [bytes([at % 256]) * (at % 7) for at in range(3 * PIECES_AT_ONCE + 1)]
    whole = b"".join(pieces)
    assert (tmp_path / written(memory, *pieces)).read_bytes() == whole
    numbers = memoryview(bytearray(range(240))).cast("I")
    name = memory.write([numbers])
    assert name is not None
    assert (tmp_path / name).read_bytes() == bytes(range(240))


def test_the_folder_is_as_before_when_all_is_released(memory: SharedMemory, tmp_path: Path) -> None:
    names = [written(memory, b"a"), written(memory, b"b")]
    (tmp_path / names[0]).unlink()  # as an engine does that has read it
    memory.release(names[:1])
    assert len(memory) == 1
    memory.release(names)
    memory.release(names)
    assert not there(tmp_path)
    assert not len(memory)
    again = written(memory, b"c")
    assert again.split("-")[2] != names[0].split("-")[2]


def test_what_is_held_is_bounded(tmp_path: Path) -> None:
    memory = SharedMemory(tmp_path, held_max_bytes=10)
    first = written(memory, b"12345678")
    assert memory.write([b"123"]) is None
    memory.release([first])
    assert memory.write([b"123"]) is not None


def test_a_folder_that_is_not_there_is_no_room(tmp_path: Path) -> None:
    memory = SharedMemory(tmp_path / "missing")
    assert memory.write([b"x"]) is None
    assert memory.sweep() == 0
    assert not len(memory)
    assert memory.namespace == ""


def test_a_file_that_cannot_be_written_leaves_nothing(
    memory: SharedMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int, _buffers: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    assert memory.write([b"x"]) is None
    assert not there(tmp_path)


def test_files_of_the_dead_are_swept_and_those_of_the_living_are_not(
    memory: SharedMemory, tmp_path: Path
) -> None:
    mine = written(memory, b"mine")
    (tmp_path / "smg-node-other").write_bytes(b"no file of ours")
    orphan = tmp_path / f"smg-node-{'a' * 16}-{'b' * 32}"
    orphan.write_bytes(b"without a lock")
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        names = child.stdout.readline().split()
        assert memory.sweep() == 1
        assert not orphan.exists()
        assert {mine, *names} <= set(there(tmp_path))
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert memory.sweep() == 3
    left = there(tmp_path)
    assert mine in left
    assert not set(names) & set(left)
    assert "smg-node-other" in left
    memory.release([mine])
    assert there(tmp_path) == ["smg-node-other"]


def test_threads_write_and_release_as_they_like(memory: SharedMemory, tmp_path: Path) -> None:
    failures: list[str] = []

    def work(number: int) -> None:
        for at in range(50):
            content = b"%d-%d" % (number, at)
            name = memory.write([content])
            if name is None or (tmp_path / name).read_bytes() != content:
                failures.append(str(content))
            else:
                memory.release([name])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert not there(tmp_path)


def test_the_namespace_is_what_engines_say_of_theirs() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert namespace() == f"{boot}:{FOLDER.stat().st_dev}"
