"""Picture threads: a few threads for work on pictures, or on clips, of which nothing stays that nobody waits for any more.

An executor of the standard library keeps what was cancelled, and all that belongs to it, until a thread gets there; of
media that is megabytes behind a slow one. Here a future that is cancelled leaves the line at once.

On Linux they have a lower priority than the event loop's thread: where all cores are busy, streams would wait for pictures.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from threading import Lock, get_native_id
from typing import Any, Final, TypeVar

T = TypeVar("T")

_NAME: Final = "pictures"
NICENESS: Final = 10
"""Steps below the priority of the process. A stream's p99 gap beside pictures of 12 megapixels: 1.19 instead of 1.23 times
that without, for as many pictures a second (`smg-chaos bench -w picture-streams`, two cores)."""


class PictureThreads(Executor):
    """An executor of `count` threads. Its methods may be called from any thread."""

    def __init__(self, count: int, name: str = _NAME) -> None:
        self._guard = Lock()
        self._line: dict[Future[Any], Callable[[], Any]] = {}
        self._count = count
        self._name = name
        self._threads = ThreadPoolExecutor(count, name, _give_way)
        self._closed = False

    @property
    def count(self) -> int:
        """How many threads there are."""
        return self._count

    @property
    def waiting(self) -> int:
        """How much work has not begun."""
        return len(self._line)

    def resize(self, count: int) -> None:
        """Work with so many threads from now on; those that go finish what they are at."""
        with self._guard:
            if count == self._count or self._closed:
                return
            before, self._count = self._threads, count
            self._threads = ThreadPoolExecutor(count, self._name, _give_way)
            for _ in self._line:
                self._threads.submit(self._next)
        before.shutdown(wait=False, cancel_futures=True)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Return the future of a call, which is last in line; RuntimeError after the end."""
        future: Future[T] = Future()
        with self._guard:
            if self._closed:
                raise RuntimeError("no work on pictures begins any more")
            self._line[future] = partial(fn, *args, **kwargs) if args or kwargs else fn
            self._threads.submit(self._next)
        future.add_done_callback(self._leave)
        return future

    def shutdown(self, wait: object = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; see `Executor.shutdown`, which lets `wait` be given by position."""
        with self._guard:
            self._closed = True
            line = list(self._line) if cancel_futures else []
        for future in line:
            future.cancel()
        self._threads.shutdown(wait=bool(wait), cancel_futures=cancel_futures)

    def _leave(self, future: "Future[Any]") -> None:
        """Forget work that is over or was cancelled."""
        with self._guard:
            self._line.pop(future, None)

    def _next(self) -> None:
        """Do what is first in line, in a thread; nothing where all who were in line have left."""
        with self._guard:
            future = next(iter(self._line), None)
            work = None if future is None else self._line.pop(future)
        if future is None or work is None or not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # as executors do: who waits for it is told
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            # A thread that rests holds on to nothing.
            del future, work


def _give_way() -> None:
    """Lower the priority of the thread that calls; only on Linux has each thread one of its own."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, os.getpid())
        os.setpriority(os.PRIO_PROCESS, get_native_id(), min(own + NICENESS, 19))
