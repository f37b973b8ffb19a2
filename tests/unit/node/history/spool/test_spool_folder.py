import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from smg_node.history.spool import spool_folder
from smg_node.history.spool.spool_folder import Place, SpoolFolder
from support.history.spools import SaltSource


def folder_at(tmp_path: Path) -> SpoolFolder:
    return SpoolFolder(tmp_path / "spool" / "node" / "1", salt=SaltSource())


def left(tmp_path: Path) -> list[bytes]:
    """What a process that comes later finds."""
    later = folder_at(tmp_path)
    assert later.take()
    try:
        return [body for _, body in later.read()]
    finally:
        later.close()


def files(tmp_path: Path) -> list[str]:
    root = tmp_path / "spool"
    return sorted(one.name for one in root.rglob("*") if one.is_file())


def appended(folder: SpoolFolder, *bodies: bytes) -> Sequence[Place]:
    return folder.append(bodies)


def test_what_was_appended_is_there_for_the_next_process(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    places = [*appended(folder, b"a", b"b"), *appended(folder, b"c")]
    assert [folder.load(place) for place in places] == [b"a", b"b", b"c"]
    folder.close()
    assert left(tmp_path) == [b"a", b"b", b"c"]


def test_a_folder_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = folder_at(tmp_path), folder_at(tmp_path)
    appended(first, b"a")
    assert not second.take()
    with pytest.raises(BlockingIOError):
        second.append([b"b"])
    first.close()
    assert second.take()
    second.close()


def test_what_is_done_does_not_come_back(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    a, b, c = appended(folder, b"a", b"b", b"c")
    folder.done([a])
    folder.done([c])
    folder.close()
    assert left(tmp_path) == [b"b"]
    assert b.segment == 1


def test_nothing_is_left_when_all_is_done(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    folder.done(appended(folder, b"a", b"b"))
    assert files(tmp_path) == ["lock"]
    folder.done(appended(folder, b"c"))
    folder.close()
    assert files(tmp_path) == []
    assert not folder.path.exists()


def test_a_file_is_not_appended_to_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_folder, "SEGMENT_BYTES_MAX", 100)
    folder = folder_at(tmp_path)
    places = [appended(folder, bytes([number]) * 60)[0] for number in range(5)]
    assert [place.segment for place in places] == [1, 1, 2, 2, 3]
    folder.done(places[:2])
    assert files(tmp_path) == ["00000002.turns", "00000003.turns", "lock"]
    folder.done([places[2]])
    folder.close()
    assert left(tmp_path) == [bytes([3]) * 60, bytes([4]) * 60]


def test_a_note_that_is_torn_at_any_byte_forgets_no_turn_that_is_not_done(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    places = appended(folder, b"a", b"b", b"c")
    folder.done(places[:1])
    folder.done(places[1:2])
    folder.close()
    note = folder.path / "00000001.done"
    content = note.read_bytes()
    for length in range(len(content) + 1):
        note.write_bytes(content[:length])
        assert left(tmp_path)[-1] == b"c"
        assert len(left(tmp_path)) == 3 - length // 8


def test_a_note_behind_a_torn_one_is_read(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    places = appended(folder, b"a", b"b", b"c")
    folder.done(places[:1])
    note = folder.path / "00000001.done"
    note.write_bytes(note.read_bytes() + b"\1\2\3")
    folder.done(places[1:2])
    folder.close()
    assert left(tmp_path) == [b"c"]


def test_a_note_without_its_turns_is_swept_away(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    folder.done(appended(folder, b"a", b"b")[:1])
    (folder.path / "00000001.turns").unlink()
    os.close(os.open(folder.path / "00000001.done", os.O_RDONLY))
    folder.close()
    assert left(tmp_path) == []
    assert files(tmp_path) == []


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_what_the_disk_did_not_take_never_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    folder = folder_at(tmp_path)
    appended(folder, b"before")
    real, calls = getattr(os, call), iter([True])

    def failing(*arguments: object) -> object:
        if next(calls, False):
            if call == "write":
                real(arguments[0], b"TURNhalf")
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(OSError, match="No space"):
        folder.append([b"lost", b"lost too"])
    appended(folder, b"after")
    folder.close()
    assert left(tmp_path) == [b"before", b"after"]


def test_a_disk_that_makes_no_file_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_at(tmp_path)
    assert folder.take()

    def failing(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing)
        with pytest.raises(OSError, match="No space"):
            folder.append([b"lost"])
    assert files(tmp_path) == ["lock"]
    appended(folder, b"after")
    folder.close()
    assert left(tmp_path) == [b"after"]
