import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io.shared_state import state_files
from smg_mesh.io.shared_state.state_files import (
    Found,
    StateFileError,
    StateFolder,
    StateInUseError,
    When,
    decode_piece,
    decode_when,
    encode_piece,
    file_name,
)

WHEN = When(1, 1_700_000_000_000, 7)
PIECE = encode_piece("settings/17", b"content")


def folder(path: Path, *before: Path) -> StateFolder:
    return StateFolder(path, before=before)


def kept(path: Path, *pieces: tuple[str, bytes], when: When = WHEN) -> None:
    """Leave a folder behind."""
    one = folder(path)
    one.open()
    one.write(pieces, when)
    one.close()


# ── A file ───────────────────────────────────────────────────────────────────


def test_a_file_says_whose_it_is() -> None:
    assert decode_piece(PIECE) == ("settings/17", b"content")
    assert file_name("settings/17") == "settings-17.bin"


@pytest.mark.parametrize("cut", range(len(PIECE)))
def test_a_file_that_was_cut_off_is_none(cut: int) -> None:
    with pytest.raises(StateFileError):
        decode_piece(PIECE[:cut])


@given(st.integers(0, len(PIECE) - 1), st.integers(1, 255))
def test_a_file_that_was_changed_is_none(at: int, by: int) -> None:
    changed = PIECE[:at] + bytes([PIECE[at] ^ by]) + PIECE[at + 1 :]
    with pytest.raises(StateFileError):
        decode_piece(changed)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_file_or_an_error_of_its_own(content: bytes) -> None:
    for decode in (decode_piece, decode_when):
        with pytest.raises(StateFileError):
            decode(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"version":2,"wall_ms":1,"boot":1}',
        b'{"version":1,"wall_ms":-1,"boot":1}',
        b'{"version":1,"wall_ms":1,"boot":-1}',
        b'{"version":1,"wall_ms":1.5,"boot":1}',
    ],
)
def test_a_damaged_when_is_an_error_of_its_own(content: bytes) -> None:
    with pytest.raises(StateFileError):
        decode_when(content)


# ── A folder ─────────────────────────────────────────────────────────────────


def test_what_is_written_is_found_again(tmp_path: Path) -> None:
    kept(tmp_path / "a" / "state", ("settings/1", b"one"), ("sticky/63", b"two"))
    one = folder(tmp_path / "a" / "state")
    assert one.open() == Found({"settings/1": b"one", "sticky/63": b"two"}, WHEN)
    assert one.is_open
    one.close()
    assert not one.is_open


def test_a_new_folder_holds_nothing(tmp_path: Path) -> None:
    one = folder(tmp_path / "state")
    assert one.open() == Found({}, None)
    one.close()


def test_files_are_for_this_user_only(tmp_path: Path) -> None:
    kept(tmp_path / "state", ("settings/1", b"one"))
    for path in (tmp_path / "state").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_piece_without_content_has_no_file(tmp_path: Path) -> None:
    kept(tmp_path / "state", ("settings/1", b"one"))
    kept(tmp_path / "state", ("settings/1", b""), ("settings/2", b""))
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == [
        "state.lock",
        "when.json",
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        PIECE[:-1],
        encode_piece("settings/2", b"of another"),
        encode_piece("../x", b""),
    ],
)
def test_a_damaged_file_is_set_aside_and_the_rest_is_read(tmp_path: Path, content: bytes) -> None:
    kept(tmp_path, ("settings/1", b"one"), ("settings/3", b"three"))
    (tmp_path / "settings-1.bin").write_bytes(content)
    one = folder(tmp_path)
    assert one.open() == Found({"settings/3": b"three"}, WHEN, ("settings-1.bin",))
    assert (tmp_path / "settings-1.bin.damaged").read_bytes() == content
    assert not (tmp_path / "settings-1.bin").exists()
    one.close()
    assert folder(tmp_path).open().damaged == ()


def test_a_file_of_any_size_is_read_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_files, "FILE_BYTES_MAX", 100)
    kept(tmp_path, ("settings/1", bytes(200)), ("settings/2", b"two"))
    assert folder(tmp_path).open().damaged == ("settings-1.bin",)


def test_without_a_when_the_newest_file_tells_the_time(tmp_path: Path) -> None:
    kept(tmp_path, ("settings/1", b"one"), ("settings/2", b"two"))
    (tmp_path / "when.json").write_bytes(b"{")
    os.utime(tmp_path / "settings-1.bin", ns=(0, 5_000_000_000))
    os.utime(tmp_path / "settings-2.bin", ns=(0, 9_000_000_000))
    found = folder(tmp_path).open()
    assert found.when == When(1, 9_000, 0)
    assert found.damaged == ("when.json",)


def test_a_disk_that_fails_while_writing_leaves_the_old_files_and_the_old_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, ("settings/1", b"old"))
    one = folder(tmp_path)
    one.open()

    def full(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            one.write([("settings/1", b"new")], When(1, 2_000_000_000_000, 8))
    one.close()
    assert folder(tmp_path).open() == Found({"settings/1": b"old"}, WHEN)


# ── Whose it is ──────────────────────────────────────────────────────────────


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    first, second = folder(tmp_path), folder(tmp_path)
    first.open()
    with pytest.raises(StateInUseError, match="another node keeps its state in"):
        second.open()
    assert not second.is_open
    first.close()
    second.open()
    second.close()


def test_who_has_no_folder_takes_over_the_one_before_and_who_has_one_does_not(
    tmp_path: Path,
) -> None:
    kept(tmp_path / "alone", ("settings/1", b"one"))
    member = folder(tmp_path / "mesh" / "a" / "state", tmp_path / "none", tmp_path / "alone")
    found = member.open()
    assert found == Found({"settings/1": b"one"}, WHEN, taken_over=tmp_path / "alone")
    assert not (tmp_path / "alone").exists()
    kept(tmp_path / "alone", ("settings/1", b"another"))
    member.close()
    assert member.open() == Found({"settings/1": b"one"}, WHEN)
    member.close()


def test_a_folder_in_use_is_not_taken_over(tmp_path: Path) -> None:
    kept(tmp_path / "alone", ("settings/1", b"one"))
    running = folder(tmp_path / "alone")
    running.open()
    member = folder(tmp_path / "member", tmp_path / "alone")
    assert member.open() == Found({}, None)
    assert (tmp_path / "alone" / "settings-1.bin").exists()
    member.close()
    running.close()


def test_a_folder_that_cannot_be_read_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, ("settings/1", b"one"))
    one = folder(tmp_path)

    def unreadable(path: Path, bytes_max: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(state_files, "_bounded", unreadable)
        with pytest.raises(OSError, match="Input/output"):
            one.open()
    assert not one.is_open
    assert one.open().when == WHEN
    one.close()
