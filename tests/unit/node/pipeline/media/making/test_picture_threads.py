"""Threads for pictures: what is cancelled leaves at once with all that belongs to it; their number changes meanwhile."""

import gc
import os
import sys
import threading
import weakref
from functools import partial

import pytest

from smg_node.pipeline.media.making.picture_threads import NICENESS, PictureThreads


class _File:
    """Stands for the bytes of a picture."""

    def touch(self) -> str:
        return "done"


class _Busy:
    """Work that goes on until it is told to end."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.gate = threading.Event()

    def __call__(self) -> None:
        self.began.set()
        assert self.gate.wait(10)


def test_what_is_cancelled_is_gone_while_the_thread_is_still_at_something_else() -> None:
    busy = _Busy()
    with PictureThreads(1) as threads:
        running = threads.submit(busy)
        assert busy.began.wait(10)
        file = _File()
        known = weakref.ref(file)
        futures = [threads.submit(file.touch) for _ in range(100)]
        kept = threads.submit(_File().touch)
        del file
        assert threads.waiting == 101
        for future in futures:
            assert future.cancel()
        gc.collect()
        assert known() is None
        assert threads.waiting == 1
        assert not running.cancel()
        busy.gate.set()
        assert kept.result(10) == "done"
        assert running.result(10) is None


def test_results_and_errors_come_as_from_any_executor() -> None:
    with PictureThreads(2) as threads:
        assert list(threads.map(lambda each: each * 2, range(50))) == [2 * n for n in range(50)]
        assert threads.submit(int, "12", base=3).result(10) == 5
        with pytest.raises(ValueError, match="invalid literal"):
            threads.submit(int, "x").result(10)


def test_an_error_keeps_nothing_of_the_work_alive() -> None:
    def broken(_: _File) -> None:
        raise ValueError("cut off")

    with PictureThreads(1) as threads:
        file = _File()
        known = weakref.ref(file)
        future = threads.submit(partial(broken, file))
        assert isinstance(future.exception(10), ValueError)
        del future, file
        gc.collect()
        assert known() is None


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
def test_with_other_threads_all_that_is_in_line_is_done_once(before: int, after: int) -> None:
    first, done, guard = [_Busy() for _ in range(before)], [], threading.Lock()

    def work(number: int) -> None:
        with guard:
            done.append(number)

    with PictureThreads(before) as threads:
        for busy in first:
            threads.submit(busy)
        for busy in first:
            assert busy.began.wait(10)
        line = [threads.submit(work, number) for number in range(40)]
        threads.resize(after)
        assert threads.count == after
        if after > before:
            assert all(future.result(10) is None for future in line), "they need not wait"
        for busy in first:
            busy.gate.set()
        for future in line:
            future.result(10)
    assert sorted(done) == list(range(40))


def test_no_more_work_goes_on_at_a_time_than_there_are_threads_now() -> None:
    under_way, most, guard = 0, 0, threading.Lock()
    pause = threading.Event()

    def work() -> None:
        nonlocal under_way, most
        with guard:
            under_way += 1
            most = max(most, under_way)
        pause.wait(0.002)
        with guard:
            under_way -= 1

    with PictureThreads(4) as threads:
        threads.resize(2)
        for future in [threads.submit(work) for _ in range(60)]:
            future.result(10)
    assert 1 <= most <= 2


def test_after_the_end_nothing_begins() -> None:
    busy = _Busy()
    threads = PictureThreads(1)
    running = threads.submit(busy)
    assert busy.began.wait(10)
    waiting = threads.submit(_File().touch)
    threads.shutdown(wait=False, cancel_futures=True)
    assert waiting.cancelled()
    with pytest.raises(RuntimeError, match="no work"):
        threads.submit(_File().touch)
    threads.resize(3)
    busy.gate.set()
    assert running.result(10) is None


def test_its_threads_give_way_to_the_loop_s() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own = priority()
    # Elsewhere than on Linux a process has one priority.
    theirs = min(own + NICENESS, 19) if sys.platform == "linux" else own
    with PictureThreads(2) as threads:
        assert threads.submit(priority).result() == theirs
        threads.resize(3)
        assert threads.submit(priority).result() == theirs
    assert priority() == own
