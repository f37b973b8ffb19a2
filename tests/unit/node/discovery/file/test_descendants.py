"""What a program leaves behind is ended, wherever it has gone to, and nothing else is."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from smg_node.discovery.file.descendants import MARK, end_descendants, new_mark
from smg_node.discovery.file.look import LookError, run_program

WAIT_S = 60.0
# Leaves its session and its parent, as daemons do, keeps nothing open, and says who it is.
_DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (0, 1, 2):
            os.close(number)
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(3600)
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


def daemon(told: Path, afterwards: str) -> list[str]:
    """Return the command of a program that leaves a daemon, and then does that."""
    return [sys.executable, "-c", f"{_DAEMON}\n{afterwards}", str(told)]


def lives(pid: int) -> bool:
    """Whether there is such a process, and it is not over."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def is_over(told: Path) -> bool:
    pid = int(told.read_text())  # noqa: ASYNC240 - a few bytes
    async with asyncio.timeout(WAIT_S):
        while lives(pid):  # noqa: ASYNC110 - the system tells nobody
            await asyncio.sleep(0.01)
    return True


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of this user."""
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(3600)"]
    environment = {**os.environ, MARK: new_mark()}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
        process.kill()


async def test_a_daemon_of_a_program_that_ended_well_is_ended(tmp_path: Path) -> None:
    told = tmp_path / "daemon"
    assert await run_program(daemon(told, "print('[]')"), timeout_s=WAIT_S) == b"[]\n"
    assert await is_over(told)


async def test_a_daemon_of_a_program_that_failed_is_ended(tmp_path: Path) -> None:
    told = tmp_path / "daemon"
    with pytest.raises(LookError, match="status 3"):
        await run_program(daemon(told, "sys.exit(3)"), timeout_s=WAIT_S)
    assert await is_over(told)


async def test_a_daemon_of_a_program_that_is_cut_off_is_ended(tmp_path: Path) -> None:
    told = tmp_path / "daemon"
    async with asyncio.TaskGroup() as group:
        command = daemon(told, "time.sleep(3600)")
        running = group.create_task(run_program(command, timeout_s=3600))
        async with asyncio.timeout(WAIT_S):
            while not told.exists():  # noqa: ASYNC110 - it is another process that makes it
                await asyncio.sleep(0.01)
        running.cancel()
    assert await is_over(told)


async def test_others_are_left_alone(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    assert await run_program([sys.executable, "-c", "print('[]')"], timeout_s=WAIT_S) == b"[]\n"
    assert end_descendants(new_mark()) == 0
    assert end_descendants("") == 0
    assert sleeper.poll() is None
    assert lives(os.getpid())


def test_only_the_whole_mark_counts() -> None:
    mark = new_mark()
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(3600)"]
    near = {"A": f"{MARK}={mark}", f"X{MARK}": mark, "B": f"\n{MARK}={mark}", MARK: f"{mark}0"}
    with subprocess.Popen(command, env=near, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert end_descendants(mark) == 0
        assert process.poll() is None
        assert end_descendants(f"{mark}0") == 1
        assert process.wait(WAIT_S) in (-signal.SIGKILL, 0)


def test_a_process_that_is_over_is_none(sleeper: subprocess.Popen[bytes]) -> None:
    mark = new_mark()
    begun = subprocess.Popen([sys.executable, "-c", ""], env={**os.environ, MARK: mark})
    while lives(begun.pid):
        time.sleep(0.01)
    assert end_descendants(mark) == 0
    assert begun.wait(WAIT_S) == 0
