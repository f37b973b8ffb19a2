"""Threads of the event loop's default executor, of which none can hold up the end of a process.

Blocking calls of every kind run here by `asyncio.to_thread` and `getaddrinfo`: files, names, certificates. One of them may
hang for minutes or for ever, as a file behind a network does whose server is away, and a standard executor is joined twice
without limit: when the loop closes, and when the interpreter ends. These threads are waited for a while, so that what is
being written is written, and then left behind.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Final, ParamSpec, TypeAlias, TypeVar

PATIENCE_S: Final = 3.0
"""Longer than any file or name that answers takes; short beside what a process is given to end."""
_Work: TypeAlias = tuple["Future[object]", Callable[[], object]]
P = ParamSpec("P")
T = TypeVar("T")


def threads_max() -> int:
    """Return as many threads as asyncio would have: calls that mostly wait."""
    return min(32, (os.cpu_count() or 1) + 4)


class LeavableThreads(ThreadPoolExecutor):
    """Executor of a few daemon threads, started as they are needed.

    It is a `ThreadPoolExecutor` because asyncio takes no other kind; none of that one's threads is ever started.
    """

    def __init__(self, count_max: int, *, patience_s: float = PATIENCE_S) -> None:
        super().__init__(count_max, thread_name_prefix="blocking")
        self._count_max: Final = count_max
        self._patience_s: Final = patience_s
        self._calls: Final[SimpleQueue[_Work | None]] = SimpleQueue()
        self._resting: Final = threading.Semaphore(0)
        self._begun: Final[list[threading.Thread]] = []
        self._guard: Final = threading.Lock()
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """See `Executor`."""
        outcome: Future[T] = Future()
        with self._guard:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._calls.put((outcome, lambda: fn(*args, **kwargs)))  # type: ignore[arg-type]  # of another T
            if not self._resting.acquire(blocking=False) and len(self._begun) < self._count_max:
                name = f"blocking_{len(self._begun)}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._begun.append(thread)
                thread.start()
        return outcome

    def shutdown(self, wait: object = True, *, cancel_futures: bool = False) -> None:
        """See `Executor`, which lets `wait` be given by position; what still runs after `patience_s` is left behind."""
        with self._guard:
            self._closed = True
            begun = list(self._begun)
        if cancel_futures:
            self._cancel_waiting()
        for _ in begun:
            self._calls.put(None)
        if wait:
            until_s = time.monotonic() + self._patience_s
            for thread in begun:
                thread.join(max(0.0, until_s - time.monotonic()))

    def _cancel_waiting(self) -> None:
        try:
            while True:
                work = self._calls.get_nowait()
                if work is not None:
                    work[0].cancel()
        except Empty:
            return

    def _run(self) -> None:
        while True:
            work = self._calls.get()
            if work is None:
                return
            outcome, call = work
            if outcome.set_running_or_notify_cancel():
                try:
                    outcome.set_result(call())
                except BaseException as error:
                    # As executors do: whoever waits for it is told, whatever it is.
                    outcome.set_exception(error)
            # Nothing of the last call is kept while there is no other one.
            del work, outcome, call
            self._resting.release()
