"""Process tree of a server: its child processes, whether they are alive, and killing all of them at
once.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the processes that this one has started and that are there."""
    if sys.platform == "linux":
        tables = (Path(f"/proc/{pid}/task").glob("*/children")) if is_alive(pid) else iter(())
        return [int(word) for table in tables for word in table.read_text().split()]
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    pairs = (line.split() for line in listed.stdout.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == pid]


def is_alive(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform == "linux":
        try:
            # A child of somebody who was killed is dead as soon as it is a zombie, whoever buries it.
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False
    return True


def kill_all(pids: Sequence[int]) -> None:
    """Kill these processes at once, those that exist."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
