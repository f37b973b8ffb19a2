import asyncio
import threading

import pytest

from smg_mesh.io.blocking_threads import Threads, ThreadsBusyError


async def test_results_and_errors_come_back() -> None:
    threads = Threads("test", threads_max=1)
    assert await threads.call(lambda: 7, timeout_s=10) == 7
    with pytest.raises(ZeroDivisionError):
        await threads.call(lambda: 1 // 0, timeout_s=10)
    assert threads.running == 0


async def test_a_call_that_hangs_is_left_behind_and_still_counts() -> None:
    release = threading.Event()
    threads = Threads("test", threads_max=2)
    try:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await threads.call(release.wait, timeout_s=0.01)
        with pytest.raises(ThreadsBusyError, match="2 calls of test hang"):
            await threads.call(release.wait, timeout_s=10)
    finally:
        release.set()
    while threads.running:  # noqa: ASYNC110 - a test looks from outside
        await asyncio.sleep(0.001)
    assert await threads.call(lambda: "free again", timeout_s=10) == "free again"


async def test_the_loop_runs_on_while_a_thread_blocks() -> None:
    release = threading.Event()
    threads = Threads("test", threads_max=1)
    call = threads.start(release.wait)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not call.done()
    release.set()
    assert await call


def test_a_thread_that_outlives_its_loop_harms_nobody() -> None:
    release = threading.Event()

    async def leave_one_behind() -> None:
        with pytest.raises(TimeoutError):
            await Threads("test", threads_max=1).call(release.wait, timeout_s=0.01)

    asyncio.run(leave_one_behind())
    (left,) = [one for one in threading.enumerate() if one.name == "mesh-test"]
    assert left.daemon
    release.set()
    left.join(10)
    assert not left.is_alive()
