"""Large work in a thread of its own: what comes back, and that the thread ends."""

import asyncio
import threading

import pytest

from smg_node.fleet.models.one_shot_thread import in_own_thread


async def ended(thread: threading.Thread) -> bool:
    for _ in range(500):
        if not thread.is_alive():
            return True
        await asyncio.sleep(0.01)
    return False


async def test_what_the_work_returns_comes_back_and_its_thread_ends() -> None:
    thread = await in_own_thread(threading.current_thread)
    assert thread is not threading.current_thread()
    assert await ended(thread)


async def test_two_works_at_a_time_have_a_thread_each() -> None:
    both = threading.Barrier(2, timeout=30)

    def work() -> threading.Thread:
        both.wait()
        return threading.current_thread()

    one, other = await asyncio.gather(in_own_thread(work), in_own_thread(work))
    assert one is not other


async def test_what_the_work_raises_comes_back_and_its_thread_ends() -> None:
    threads = []

    def fail() -> None:
        threads.append(threading.current_thread())
        raise ValueError("torn")

    with pytest.raises(ValueError, match="torn"):
        await in_own_thread(fail)
    assert await ended(threads[0])


async def test_work_nobody_waits_for_any_more_is_done_and_its_thread_ends() -> None:
    begun, go = threading.Event(), threading.Event()
    threads = []

    def work() -> None:
        threads.append(threading.current_thread())
        begun.set()
        assert go.wait(30)

    waiting = in_own_thread(work)
    await asyncio.to_thread(begun.wait, 30)
    waiting.cancel()
    go.set()
    assert await ended(threads[0])
