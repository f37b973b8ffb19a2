import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.escrow.founding_state import Ballot, Founders, FoundingState
from smg_mesh.escrow.limit_model import Roster
from smg_mesh.io.rights import mint_log
from smg_mesh.io.rights.mint_log import Line, MintLog, Recalled, frame, read_frames

LATE_MS = 1 << 50
"""When nothing of these tests is over yet."""
ROSTER = Roster(b"r" * 16, 3, ("a", "b"), (2, 2))
FOUNDING = FoundingState(
    Ballot(3, "a", 1 << 62), (Founders(b"\xff" * 16, ("a", "b"), (1 << 62, 5)),), (b"\xff" * 16,)
)


def line(total: int, *, window: int = 1, key: str = "k#tokens/60000") -> Line:
    return Line(key, window, total, LATE_MS)


def reopened(folder: Path, *, wall_ms: int = 0) -> Recalled:
    log = MintLog(folder)
    try:
        return log.open(wall_ms=wall_ms)
    finally:
        log.close()


def written(folder: Path, *groups: list[Line], roster: Roster | None = ROSTER) -> Path:
    """Return the file of a log that was closed after these writes."""
    log = MintLog(folder)
    log.open(wall_ms=0)
    if roster is not None:
        log.keep_roster(roster)
    for group in groups:
        log.append(group, wall_ms=0)
    log.close()
    return folder / "minted.log"


def test_a_new_folder_remembers_that_there_is_nothing(tmp_path: Path) -> None:
    assert reopened(tmp_path / "rights") == Recalled({}, None)


def test_the_largest_total_and_the_roster_outlive_a_restart(tmp_path: Path) -> None:
    written(tmp_path, [line(10), line(5, window=2)], [line(30)], [line(20)])
    recalled = reopened(tmp_path)
    assert recalled.minted == {("k#tokens/60000", 1): 30, ("k#tokens/60000", 2): 5}
    assert recalled.roster == ROSTER
    assert recalled.damage == ""


def test_what_was_promised_outlives_a_restart_until_there_is_a_roster(tmp_path: Path) -> None:
    log = MintLog(tmp_path)
    log.open(wall_ms=0)
    log.keep_founding(FOUNDING)
    log.close()
    assert reopened(tmp_path) == Recalled({}, None, "", FOUNDING)
    written(tmp_path, roster=ROSTER)
    assert reopened(tmp_path) == Recalled({}, ROSTER)
    assert not (tmp_path / "founding.json").exists()


def test_what_was_promised_counts_for_nothing_beside_a_roster_that_cannot_be_read(
    tmp_path: Path,
) -> None:
    log = MintLog(tmp_path)
    log.open(wall_ms=0)
    log.keep_founding(FOUNDING)
    log.close()
    (tmp_path / "roster.json").write_text('{"id": 7}')
    assert reopened(tmp_path).founding is None


def test_promises_that_cannot_be_read_are_set_aside(tmp_path: Path) -> None:
    written(tmp_path, [line(10)], roster=None)
    (tmp_path / "founding.json").write_text('{"ballot": 7}')
    recalled = reopened(tmp_path)
    assert (recalled.minted, recalled.founding) == ({("k#tokens/60000", 1): 10}, None)
    assert "founding.json" in recalled.damage
    assert (tmp_path / "founding.json.damaged").exists()


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_end_is_cut_off_and_the_rest_is_remembered(tmp_path: Path, cut: int) -> None:
    file = written(tmp_path, [line(10)], [line(20)])
    content = file.read_bytes()
    file.write_bytes(content[:-cut])
    kept = len(frame([line(10)])) <= len(content) - cut
    assert reopened(tmp_path).minted == ({("k#tokens/60000", 1): 10} if kept else {})


def test_a_torn_end_may_be_anything(tmp_path: Path) -> None:
    file = written(tmp_path, [line(10)])
    with file.open("ab") as end:
        end.write(frame([line(99)])[:-4] + b"torn")
    assert reopened(tmp_path).minted == {("k#tokens/60000", 1): 10}
    assert reopened(tmp_path).minted == {("k#tokens/60000", 1): 10}


def test_damage_before_the_end_means_that_nobody_remembers(tmp_path: Path) -> None:
    file = written(tmp_path, [line(10)], [line(20)], [line(30)])
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    recalled = reopened(tmp_path)
    assert recalled.minted is None
    assert "damaged" in recalled.damage
    assert file.with_name("minted.log.damaged").read_bytes() == content
    # What is written from now on is remembered in part only, and so is nothing.
    assert recalled.roster == ROSTER


def test_a_log_that_is_gone_beside_a_roster_means_that_nobody_remembers(tmp_path: Path) -> None:
    written(tmp_path, [line(10)]).unlink()
    recalled = reopened(tmp_path)
    assert recalled.minted is None
    assert "gone" in recalled.damage


def test_a_damaged_roster_is_set_aside(tmp_path: Path) -> None:
    written(tmp_path, [line(10)])
    (tmp_path / "roster.json").write_text('{"id": 7}')
    recalled = reopened(tmp_path)
    assert recalled.roster is None
    assert recalled.minted == {("k#tokens/60000", 1): 10}
    assert "roster.json" in recalled.damage


def test_what_is_over_is_not_kept(tmp_path: Path) -> None:
    written(tmp_path, [Line("k#tokens/60000", 1, 10, 500), line(20, window=2)])
    assert reopened(tmp_path, wall_ms=501).minted == {("k#tokens/60000", 2): 20}


def test_of_what_was_lent_the_last_line_counts_in_any_order(tmp_path: Path) -> None:
    key, other = "!lent\x1fb\x1fk#concurrent/0", "!lent\x1fc\x1fk#concurrent/0"
    written(
        tmp_path,
        [line(4, window=5, key=key), line(9, window=7, key=key)],
        [line(2, window=8, key=key), line(7, window=6, key=key), line(1, window=3, key=other)],
    )
    assert reopened(tmp_path).minted == {(key, 8): 2, (other, 3): 1}
    assert reopened(tmp_path).minted == {(key, 8): 2, (other, 3): 1}


def test_a_long_log_is_begun_anew_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mint_log, "LOG_BYTES_MAX", 2_000)
    file = written(tmp_path, *([line(total, window=total % 3)] for total in range(200)))
    assert file.stat().st_size < 4_000
    assert reopened(tmp_path).minted == {
        ("k#tokens/60000", window): 197 + (window + 1) % 3 for window in range(3)
    }


def test_a_write_that_fails_is_an_error_and_the_next_one_may_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MintLog(tmp_path)
    log.open(wall_ms=0)
    log.append([line(10)], wall_ms=0)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            log.append([line(20)], wall_ms=0)
        with pytest.raises(OSError, match="No space"):
            log.append([line(20)], wall_ms=0)
    log.append([line(30)], wall_ms=0)
    log.close()
    assert reopened(tmp_path).minted == {("k#tokens/60000", 1): 30}


@given(st.lists(st.lists(st.integers(0, 99), min_size=1), max_size=5), st.integers(0, 200))
def test_any_beginning_of_a_log_gives_the_frames_that_are_whole(
    groups: list[list[int]], cut: int
) -> None:
    frames = [frame([line(total) for total in group]) for group in groups]
    content = b"".join(frames)
    content = content[: max(0, len(content) - cut)]
    lines, good, more = read_frames(content)
    assert not more
    whole = 0
    while whole < len(frames) and sum(map(len, frames[: whole + 1])) <= len(content):
        whole += 1
    assert good == sum(map(len, frames[:whole]))
    assert [one.total for one in lines] == [total for group in groups[:whole] for total in group]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(content: bytes) -> None:
    lines, good, _ = read_frames(content + frame([line(1)])[:9])
    assert lines == []
    assert good == 0


def test_a_folder_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    written(tmp_path, [line(10)])
    first, second = MintLog(tmp_path), MintLog(tmp_path)
    first.open(wall_ms=0)
    with pytest.raises(OSError, match="another process"):
        second.open(wall_ms=0)
    with pytest.raises(OSError, match="another process"):
        second.append([line(99)], wall_ms=0)
    with pytest.raises(OSError, match="another process"):
        second.keep_roster(ROSTER)
    first.append([line(20)], wall_ms=0)
    first.close()
    # Who could not read it at first keeps what is there all the same.
    second.append([line(5, window=2)], wall_ms=0)
    second.close()
    assert reopened(tmp_path).minted == {("k#tokens/60000", 1): 20, ("k#tokens/60000", 2): 5}
