"""Blocking threads: blocking calls in a few daemon threads, so that
nothing waits for one that hangs.

Name lookups and disk writes can block for minutes. The event loop's own executor would be joined at
exit, so a dead name server could keep a node from stopping; these threads are daemons and are left
behind. What is bounded is their number: when all hang, further calls are refused at once.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ThreadsBusyError(Exception):
    """As many calls as are allowed have not come back yet."""


class Threads:
    """A door to blocking calls, at most `threads_max` of them at a time."""

    def __init__(self, name: str, *, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._running = 0

    @property
    def running(self) -> int:
        """Calls that have not come back, whether or not a caller still waits."""
        return self._running

    async def call(self, work: Callable[[], T], *, timeout_s: float) -> T:
        """Return what `work` returns, or raise what it raises.

        TimeoutError after `timeout_s` (the thread is left to itself), ThreadsBusyError at once when
        too many hang already.
        """
        async with asyncio.timeout(timeout_s):
            return await self.start(work)

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Begin `work` and return its outcome to come; ThreadsBusyError when too many hang already."""
        if self._running >= self._threads_max:
            raise ThreadsBusyError(f"{self._running} calls of {self._name} hang already")
        loop = asyncio.get_running_loop()
        call = _Call(work, loop.create_future())

        def report() -> None:
            self._running -= 1
            call.settle()

        def body() -> None:
            call.run()
            # A loop that was closed meanwhile has nobody who waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(report)

        thread = threading.Thread(target=body, name=f"mesh-{self._name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise ThreadsBusyError(f"no thread for {self._name}: {error}") from error
        self._running += 1
        return call.future


class _Call(Generic[T]):
    """One call: run in its thread, settled in the loop's."""

    def __init__(self, work: Callable[[], T], future: asyncio.Future[T]) -> None:
        self.future = future
        self._work = work
        self._error: Exception | None = None
        self._result: list[T] = []

    def run(self) -> None:
        """Do the work and keep its outcome."""
        try:
            self._result.append(self._work())
        except Exception as error:
            # A door between threads: whatever it is, the caller gets it in `settle`.
            self._error = error

    def settle(self) -> None:
        """Hand the outcome to the caller, if it still waits."""
        if self.future.done():
            return
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(self._result[0])
