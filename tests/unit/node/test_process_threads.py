"""Threads for blocking calls: bounded, reused, waited for at the end, and left behind where they hang."""

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest

from smg_node.process_threads import LeavableThreads, threads_max

_HANGS = """
import asyncio, threading
from smg_node.process_threads import LeavableThreads
{loop}
def hang():
    print("hangs", flush=True)
    threading.Event().wait()

async def main():
    asyncio.get_running_loop().set_default_executor(LeavableThreads(2, patience_s=0.1))
    task = asyncio.create_task(asyncio.to_thread(hang))
    await asyncio.sleep(0.1)
    task.cancel()

run(main())
print("over", flush=True)
"""


def test_calls_return_what_they_return_or_raise_what_they_raise() -> None:
    threads = LeavableThreads(2)
    assert threads.submit(divmod, 7, 2).result(30) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(30)
    assert threads.submit(int, "12", base=3).result(30) == 5
    threads.shutdown()


def test_threads_are_few_and_one_that_rests_is_used_again() -> None:
    threads, gate = LeavableThreads(3), threading.Event()
    for _ in range(5):
        threads.submit(str).result(30)
        # It rests a moment after it has answered.
        for _ in range(1000):
            if threads._resting._value:
                break
            time.sleep(0.01)
    assert len(threads._begun) == 1
    waiting = [threads.submit(gate.wait) for _ in range(20)]
    assert len(threads._begun) == 3
    assert all(thread.daemon for thread in threads._begun)
    gate.set()
    assert all(one.result(30) for one in waiting)
    threads.shutdown()
    assert not any(thread.is_alive() for thread in threads._begun)


def test_the_end_waits_for_what_runs_and_for_what_was_accepted() -> None:
    threads, done = LeavableThreads(1, patience_s=60.0), list[int]()

    def write(number: int) -> None:
        time.sleep(0.01)
        done.append(number)

    for number in range(5):
        threads.submit(write, number)
    threads.shutdown()
    assert done == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="after shutdown"):
        threads.submit(str)
    threads.shutdown()


def test_what_waits_can_be_cancelled_at_the_end() -> None:
    threads, gate = LeavableThreads(1), threading.Event()
    runs, waits = threads.submit(gate.wait), threads.submit(str)
    threads.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        waits.result(30)
    gate.set()
    assert runs.result(30) is True


def test_a_loop_takes_them() -> None:
    async def main() -> tuple[int, str]:
        asyncio.get_running_loop().set_default_executor(LeavableThreads(threads_max()))
        (place, *_) = await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
        name = await asyncio.to_thread(lambda: threading.current_thread().name)
        return int(place[4][1]), name

    assert asyncio.run(main()) == (80, "blocking_0")


@pytest.mark.parametrize("loop", ["run = asyncio.run", "from uvloop import run"])
def test_a_process_ends_although_a_call_hangs(loop: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _HANGS.format(loop=loop)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "hangs\nover\n"), ran.stderr
