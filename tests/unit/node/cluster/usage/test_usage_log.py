import errno
import os
from pathlib import Path

import pytest

from smg_node.admission.usage.usage_lines import Line
from smg_node.cluster.usage import usage_log
from smg_node.cluster.usage.usage_log import DAYS_KEPT, UsageLog
from support.http.request_usage import MIDNIGHT

DAY = MIDNIGHT // 24


def total(part: str, requests: int, *, hour: int = MIDNIGHT, tenant: str = "acme") -> Line:
    return Line(part, hour, tenant, "k", "m", requests, 0, 10 * requests, 0, requests, 0)


def requests(log: UsageLog, first: int = MIDNIGHT, end: int = MIDNIGHT + 24) -> int:
    return sum(line.requests for line in log.read(first, end))


def only_file(folder: Path) -> Path:
    (file,) = folder.glob("usage-*.jsonl")
    return file


def test_totals_outlive_their_process_and_the_latest_counts(tmp_path: Path) -> None:
    log = UsageLog(tmp_path / "u", "a")
    log.append([total("a.1", 1), total("a.1", 5, tenant="b")])
    log.append([total("a.1", 3)])
    log.append([total("a.1", 3)])
    assert requests(log) == 8
    log.close()
    again = UsageLog(tmp_path / "u", "b")
    again.append([total("b.1", 2)])
    assert requests(again) == 10


def test_hours_lie_in_the_file_of_their_utc_day(tmp_path: Path) -> None:
    log = UsageLog(tmp_path, "a")
    log.append(
        [total("a.1", 1, hour=MIDNIGHT - 1), total("a.2", 2), total("a.3", 4, hour=MIDNIGHT + 24)]
    )
    names = sorted(path.name for path in tmp_path.glob("usage-*"))
    assert names == ["usage-2026-01-01.jsonl", "usage-2026-01-02.jsonl", "usage-2026-01-03.jsonl"]
    assert requests(log, MIDNIGHT, MIDNIGHT + 24) == 2
    assert requests(log, MIDNIGHT, MIDNIGHT + 1) == 2
    assert requests(log, MIDNIGHT + 1, MIDNIGHT + 24) == 0
    assert requests(log, MIDNIGHT - 24, MIDNIGHT + 25) == 7


def test_a_file_may_end_anywhere_and_whatever_is_whole_counts(tmp_path: Path) -> None:
    log = UsageLog(tmp_path, "a")
    log.append([total("a.1", 1), total("a.2", 2, hour=MIDNIGHT + 1)])
    content = only_file(tmp_path).read_bytes()
    first = content.index(b"\n")
    for end in range(len(content) + 1):
        only_file(tmp_path).write_bytes(content[:end])
        # A line is whole with its last bracket; the line feed may be missing.
        expected = (1 if end >= first else 0) + (2 if end >= len(content) - 1 else 0)
        assert requests(log) == expected, end
        log.append([total("a.3", 4, hour=MIDNIGHT + 2)])
        assert requests(log) == expected + 4, end


@pytest.mark.parametrize(
    "rubbish", [b"\0" * 100, b"{}\n", b"[1,2]\n", b"\xff\xfe\n\n", b"[[[[" * 9999]
)
def test_what_is_no_line_is_skipped_and_counted(tmp_path: Path, rubbish: bytes) -> None:
    log = UsageLog(tmp_path, "a")
    log.append([total("a.1", 1)])
    with only_file(tmp_path).open("ab") as file:
        file.write(rubbish)
    log.append([total("a.2", 2)])
    assert requests(log) == 3
    assert log.torn


def test_a_full_disk_tears_a_line_and_the_next_write_makes_it_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = UsageLog(tmp_path, "a")
    log.append([total("a.1", 1)])

    def full(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[:20])
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(usage_log, "_write", full)
        with pytest.raises(OSError, match="no space"):
            log.append([total("a.1", 7)])
    assert requests(log) == 1
    log.append([total("a.1", 7)])
    assert requests(log) == 7


def test_a_file_that_has_grown_is_written_anew_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = UsageLog(tmp_path, "a")
    for count in range(1, 30):
        former.append([total("a.1", count), total("a.1", count, tenant="b")])
    former.close()
    log = UsageLog(tmp_path, "b")
    log.append([total("b.1", 3), total("b.2", 4)])
    before, size = requests(log), only_file(tmp_path).stat().st_size
    log.compact(DAY)
    assert requests(log) == before == 29 + 29 + 3 + 4
    assert only_file(tmp_path).stat().st_size < size / 5
    # Own parts stay apart: a line of theirs that is written later must still replace them.
    log.append([total("b.2", 5)])
    assert requests(log) == before + 1
    log.compact(DAY)
    log.compact(DAY)
    assert requests(log) == before + 1


def test_it_is_written_anew_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_log, "GROWN_BYTES_MAX", 2_000)
    log = UsageLog(tmp_path, "a")
    for count in range(1, 500):
        log.append([total("a.1", count)])
    assert requests(log) == 499
    assert only_file(tmp_path).stat().st_size < 2_200


def test_a_copy_that_does_not_fit_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_log, "GROWN_BYTES_MAX", 100)

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(usage_log, "_replace", full)
    log = UsageLog(tmp_path, "a")
    for count in range(1, 20):
        log.append([total("a.1", count)])
    assert requests(log) == 19


def test_days_that_are_too_long_ago_are_removed_and_nothing_else(tmp_path: Path) -> None:
    log = UsageLog(tmp_path, "a")
    hours = [(DAY - ago) * 24 for ago in (DAYS_KEPT + 1, DAYS_KEPT, 0)]
    log.append([total("a.1", 1, hour=hour) for hour in hours])
    for name in ("usage-2020-13-45.jsonl", "notes.txt", "usage-.jsonl"):
        (tmp_path / name).write_text("mine")
    assert log.forget(DAY) == ["usage-2025-11-22.jsonl"]
    assert requests(log, hours[0], hours[2] + 1) == 2
    assert len(list(tmp_path.iterdir())) == 6
    assert log.forget(DAY) == []


def test_one_process_writes_at_a_time_and_all_may_read(tmp_path: Path) -> None:
    first, second = UsageLog(tmp_path, "a"), UsageLog(tmp_path, "b")
    first.append([total("a.1", 1)])
    with pytest.raises(BlockingIOError):
        second.append([total("b.1", 1)])
    assert requests(second) == 1
    first.close()
    second.append([total("b.1", 1)])
    assert requests(first) == 2


def test_where_nothing_was_ever_used_there_is_no_folder(tmp_path: Path) -> None:
    log = UsageLog(tmp_path / "u", "a")
    assert log.read(0, 24) == []
    assert log.forget(DAY) == []
    log.close()
    assert list(tmp_path.iterdir()) == []
