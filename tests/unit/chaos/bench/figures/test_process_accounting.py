import os
import time
from pathlib import Path

import pytest

from smg_chaos.bench.figures.process_accounting import (
    AccountingError,
    Memory,
    ProcessMemory,
    cpu_s,
    memory_by_process,
    memory_of,
    tree_cpu_s,
    tree_of,
    tree_scheduled_s,
    tree_switches,
)

TICKS = os.sysconf("SC_CLK_TCK")


def process(proc: Path, pid: int, *, parent: int, session: int = 1, used: str = "0 0 0 0") -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    # The name may hold anything, also what looks like the end of a name.
    stat = f"{pid} (a) (na me) S {parent} {pid} {session} 0 0 0 0 0 0 0 {used} 20 0 1"
    (folder / "stat").write_text(stat)


def sizes(proc: Path, pid: int, *, rss: int, pss: int, peak: int) -> None:
    (proc / str(pid) / "smaps_rollup").write_text(f"x\nRss:  {rss} kB\nPss:  {pss} kB\n")
    (proc / str(pid) / "status").write_text(f"Name:\tx\nVmHWM:\t{peak} kB\nVmRSS:\t{rss} kB\n")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, 1, parent=0)
    (tmp_path / "meminfo").write_text("no process")
    return tmp_path


def test_a_tree_is_a_process_and_all_its_descendants(proc: Path) -> None:
    process(proc, 10, parent=1)
    process(proc, 11, parent=10)
    process(proc, 12, parent=11)
    process(proc, 20, parent=1)
    assert tree_of(10, proc) == [10, 11, 12]


def test_a_daemon_that_left_its_parent_is_found_by_its_session(proc: Path) -> None:
    process(proc, 10, parent=1, session=10)
    process(proc, 15, parent=1, session=10)
    process(proc, 16, parent=15, session=16)
    assert tree_of(10, proc) == [10, 15, 16]


def test_a_living_process_is_asked_to_the_nanosecond() -> None:
    early_s = time.process_time()
    told_s = cpu_s([os.getpid()]) - sum(os.times()[2:4])
    late_s = time.process_time()
    # What children used is told in ticks.
    assert early_s - 0.02 <= told_s <= late_s + 0.02
    before_s = cpu_s([os.getpid()])
    sum(range(20_000))
    assert cpu_s([os.getpid()]) - before_s > 0.0


def test_user_and_system_time_and_that_of_ended_children_are_counted(proc: Path) -> None:
    process(proc, 10, parent=1, used=f"{TICKS} {2 * TICKS} {3 * TICKS} {4 * TICKS}")
    process(proc, 11, parent=10, used=f"{5 * TICKS} 0 0 0")
    assert tree_cpu_s(10, proc) == 15.0


def test_the_nanoseconds_of_all_threads_of_a_tree_are_added_up(proc: Path) -> None:
    process(proc, 10, parent=1)
    process(proc, 11, parent=10)
    for pid, task, ns in ((10, 10, 1_000_000), (10, 12, 200_000), (11, 11, 30_000)):
        folder = proc / str(pid) / "task" / str(task)
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(f"{ns} 77 9\n")
    (proc / "11" / "task" / "13").mkdir()  # a thread that has just ended
    assert tree_scheduled_s(10, proc) == pytest.approx(0.00123)


def test_the_wake_ups_of_all_threads_of_a_tree_are_added_up(proc: Path) -> None:
    process(proc, 10, parent=1)
    process(proc, 11, parent=10)
    for pid, task, times in ((10, 10, 100), (10, 12, 20), (11, 11, 3)):
        folder = proc / str(pid) / "task" / str(task)
        folder.mkdir(parents=True)
        text = f"Name:\tn\nvoluntary_ctxt_switches:\t{times}\nnonvoluntary_ctxt_switches:\t9\n"
        (folder / "status").write_text(text)
    (proc / "11" / "task" / "13").mkdir()  # a thread that has just ended
    assert tree_switches(10, proc) == 123


def test_nothing_is_lost_or_counted_twice_when_a_child_ends(proc: Path) -> None:
    process(proc, 10, parent=1, used="10 0 0 0")
    process(proc, 11, parent=10, used="30 20 0 0")
    before = tree_cpu_s(10, proc)
    (proc / "11" / "stat").unlink()
    (proc / "11").rmdir()
    process(proc, 10, parent=1, used="10 0 30 20")
    assert tree_cpu_s(10, proc) == before


def test_a_process_that_cannot_be_read_is_an_error_and_not_zero(proc: Path) -> None:
    with pytest.raises(AccountingError):
        cpu_s([77], proc)


def test_a_process_that_ends_in_between_is_left_out(proc: Path) -> None:
    process(proc, 10, parent=1, used=f"{TICKS} 0 0 0")
    assert cpu_s([10, 77], proc) == 1.0


def test_memory_is_summed_over_the_tree(proc: Path) -> None:
    process(proc, 10, parent=1)
    process(proc, 11, parent=10)
    sizes(proc, 10, rss=100, pss=60, peak=200)
    sizes(proc, 11, rss=50, pss=10, peak=70)
    assert memory_of(10, proc) == Memory(rss=150 * 1024, pss=70 * 1024, peak=190 * 1024)


def test_a_kernel_that_does_not_tell_shares_tells_at_least_the_rest(proc: Path) -> None:
    process(proc, 10, parent=1)
    sizes(proc, 10, rss=100, pss=60, peak=200)
    (proc / "10" / "smaps_rollup").unlink()
    assert memory_of(10, proc) == Memory(rss=100 * 1024, pss=100 * 1024, peak=200 * 1024)


def test_the_real_kernel_counts_this_very_process() -> None:
    pid, before = os.getpid(), tree_cpu_s(os.getpid())
    begun = time.process_time()
    while time.process_time() - begun < 0.1:
        pass
    assert tree_cpu_s(pid) - before >= 0.05
    assert memory_of(pid).rss > 1024 * 1024


def test_each_process_of_a_tree_has_its_own_memory(proc: Path) -> None:
    for pid, parent, own in ((10, 1, 5), (11, 10, 7)):
        process(proc, pid, parent=parent)
        lines = f"x\nRss:  50 kB\nPss:  20 kB\nPrivate_Clean: 9 kB\nPrivate_Dirty: {own} kB\n"
        (proc / str(pid) / "smaps_rollup").write_text(lines)
    process(proc, 12, parent=10)  # It ended just now: nothing is told of its memory.
    assert memory_by_process(10, proc) == [
        ProcessMemory(10, rss=50 * 1024, pss=20 * 1024, own=5 * 1024),
        ProcessMemory(11, rss=50 * 1024, pss=20 * 1024, own=7 * 1024),
    ]
