"""Process accounting: CPU time and memory of a whole process tree, as the Linux kernel counts them.

CPU time is the sum of the CPU clocks of all processes of a tree, in nanoseconds, threads that have
ended included, and `cutime + cstime` of `/proc/PID/stat`: the time of children that have ended
meanwhile. So nothing is lost and nothing counted twice. The kernel counts the latter in ticks of 10
ms, and a process's own time as well where its clock may not be read.
"""

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
_KB: Final = 1024
# Places in /proc/PID/stat, counted from the field behind the command's name.
_PARENT: Final = 1
_SESSION: Final = 3
_OWN_TIMES: Final = slice(11, 13)
_CHILDREN_TIMES: Final = slice(13, 15)
_SCHEDULED: Final = 2
"""In the number of a process's clock: what the scheduler counts."""
_SWITCHES: Final = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)$", re.M)


class AccountingError(Exception):
    """The kernel does not report what a process used (it does on Linux)."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a tree in bytes: resident now, with shared pages counted once, and at its peak."""

    rss: int = 0
    pss: int = 0
    peak: int = 0


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Memory of one process in bytes; `own` is what it has written and no other process has."""

    pid: int
    rss: int
    pss: int
    own: int


def _stat(pid: int, proc: Path) -> list[str] | None:
    """Return the fields behind the command's name, or None if there is no such process."""
    try:
        return (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def tree_of(pid: int, proc: Path = PROC) -> list[int]:
    """Return the process, its descendants, and all members of the session it leads, sorted.

    The session catches a daemon that its parent left behind.
    """
    children: dict[int, list[int]] = {}
    found: set[int] = set()
    for entry in proc.iterdir():
        fields = _stat(int(entry.name), proc) if entry.name.isdigit() else None
        if fields is not None:
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
            if int(fields[_SESSION]) == pid:
                found.add(int(entry.name))
    todo = [pid, *found]
    while todo:
        one = todo.pop()
        found.add(one)
        todo += [child for child in children.get(one, ()) if child not in found]
    return sorted(found)


def cpu_s(pids: Iterable[int], proc: Path = PROC) -> float:
    """Return the CPU seconds, user and system, that these processes and their ended children used.

    AccountingError when none of them can be read.
    """
    used_s, read = 0.0, 0
    for pid in pids:
        fields = _stat(pid, proc)
        if fields is not None:
            own_s = _clock_s(pid) if proc == PROC else None
            used_s += _seconds(fields[_OWN_TIMES]) if own_s is None else own_s
            used_s += _seconds(fields[_CHILDREN_TIMES])
            read += 1
    if not read:
        raise AccountingError(f"no CPU time of a process can be read in {proc}")
    return used_s


def _clock_s(pid: int) -> float | None:
    """Return what the CPU clock of a process says, None where it does not: its number is made of the process's."""
    try:
        return time.clock_gettime_ns(~pid << 3 | _SCHEDULED) / 1e9
    except OSError:
        return None


def _seconds(ticks: Iterable[str]) -> float:
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def tree_cpu_s(pid: int, proc: Path = PROC) -> float:
    """Return the CPU seconds of a whole tree."""
    return cpu_s(tree_of(pid, proc), proc)


def tree_scheduled_s(pid: int, proc: Path = PROC) -> float:
    """Return the CPU seconds of all living threads of a tree, as the scheduler has them: in
    nanoseconds.

    The time of threads that have ended is missing; `tree_cpu_s` includes it.
    """
    total_ns = 0
    for one in tree_of(pid, proc):
        for task in sorted((proc / str(one) / "task").glob("*/schedstat")):
            try:
                total_ns += int(task.read_text().split()[0])
            except (OSError, IndexError, ValueError):
                continue  # the thread has ended
    return total_ns / 1e9


def tree_switches(pid: int, proc: Path = PROC) -> int:
    """Return how often all living threads of a tree have gone to sleep, which is how often they were woken up."""
    switches = 0
    for one in tree_of(pid, proc):
        for task in sorted((proc / str(one) / "task").glob("*/status")):
            with suppress(OSError):  # the thread has ended
                found = _SWITCHES.search(task.read_text(errors="replace"))
                switches += 0 if found is None else int(found[1])
    return switches


def memory_of(pid: int, proc: Path = PROC) -> Memory:
    """Return the memory of a whole tree.

    The peak is the sum of each process's own, less what they share now: the system tells the peak of what is resident, and
    pages that several processes have would be counted as often.
    """
    rss = pss = peak = 0
    for one in tree_of(pid, proc):
        rollup = _sizes(proc / str(one) / "smaps_rollup")
        status = _sizes(proc / str(one) / "status")
        rss += rollup.get("Rss", status.get("VmRSS", 0))
        pss += rollup.get("Pss", status.get("VmRSS", 0))
        peak += status.get("VmHWM", 0)
    return Memory(rss, pss, max(pss, peak - (rss - pss)))


def memory_by_process(pid: int, proc: Path = PROC) -> list[ProcessMemory]:
    """Return the memory of each process of a tree, in order of their ids; without those that cannot be read."""
    found = []
    for one in tree_of(pid, proc):
        rollup = _sizes(proc / str(one) / "smaps_rollup")
        if rollup:
            sizes = (rollup.get(name, 0) for name in ("Rss", "Pss", "Private_Dirty"))
            found.append(ProcessMemory(one, *sizes))
    return found


def _sizes(path: Path) -> dict[str, int]:
    """Return the lines `Name: N kB` of a file, in bytes; nothing if it cannot be read."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    sizes = {}
    for line in lines:
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB":
            sizes[name] = int(words[0]) * _KB
    return sizes
