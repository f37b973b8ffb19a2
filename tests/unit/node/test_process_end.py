"""The end of a process comes in any case, and what was left is named."""

import asyncio
import os
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from smg_node.process_end import EndGuard, left_over

_STUCK = """
import asyncio, threading
from smg_node.process_end import EndGuard

async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def main():
    EndGuard(patience_s=0.5).begin(7)
    {stuck}

asyncio.run(main())
"""
_THREAD = "threading.Thread(target=threading.Event().wait, name='joined').start()"
_TASK = "task = asyncio.create_task(stubborn(), name='deaf'); await asyncio.sleep(0.1)"


@pytest.mark.parametrize(
    ("stuck", "named"), [(_THREAD, "thread joined at threading.py:"), (_TASK, "task deaf at ")]
)
def test_a_process_that_does_not_end_is_ended_and_says_why(stuck: str, named: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _STUCK.format(stuck=stuck)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 7
    assert "it did not end within 0.5 s; left behind: " in ran.stderr
    assert named in ran.stderr


def test_a_process_that_ends_says_nothing() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _STUCK.format(stuck="pass").replace("0.5", "600")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_process_ends_although_nobody_reads_what_it_says() -> None:
    reads, writes = os.pipe()
    with open(reads, "rb"), open(writes, "wb") as unread:
        os.set_blocking(writes, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writes, b"x" * 4096)
        os.set_blocking(writes, True)
        ran = subprocess.run(
            [sys.executable, "-c", _STUCK.format(stuck=_THREAD)],
            stderr=unread,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 7


def test_threads_and_tasks_are_named_with_where_they_are() -> None:
    gate = threading.Event()
    waiting = threading.Thread(target=gate.wait, name="waiting")
    waiting.start()

    async def rests() -> None:
        await asyncio.sleep(3600)

    async def main() -> list[str]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(rests(), name="resting")
            await asyncio.sleep(0)
            found = await asyncio.to_thread(left_over, asyncio.get_running_loop())
            task.cancel()
        return found

    found = asyncio.run(main())
    gate.set()
    waiting.join()
    assert any(text.startswith("thread waiting at threading.py:") for text in found)
    assert any(text.startswith("task resting at test_process_end.py:") for text in found)


def test_many_are_counted() -> None:
    async def main() -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(asyncio.sleep(3600), name=f"t{number:03}")
                for number in range(100)
            ]
            await asyncio.sleep(0)
            found = left_over(asyncio.get_running_loop())
            for task in tasks:
                task.cancel()
        return found

    found = asyncio.run(main())
    assert len(found) == 13
    assert found[-1].endswith(" more")


def test_the_guard_leaves_with_the_code_after_its_patience() -> None:
    left: list[int] = []
    slept: list[float] = []
    gone = threading.Event()

    def leave(code: int) -> None:
        left.append(code)
        gone.set()

    async def main() -> None:
        EndGuard(patience_s=9.0, leave=leave, sleep=slept.append).begin(3)

    asyncio.run(main())
    assert gone.wait(30)
    assert (left, slept) == ([3], [9.0])
