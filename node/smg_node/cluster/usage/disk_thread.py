"""Disk thread: blocking calls one after the other, in a daemon thread that may hang without harm.

A disk that hangs does not keep the process from ending: the thread is left behind. A caller of a
call that never returns has to give up by itself; a call whose caller gave up before it began is not
made.
"""

import asyncio
import contextlib
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final, TypeVar

T = TypeVar("T")


class DiskThread:
    """One thread and its queue of calls; it starts with the first call."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._calls: Final = SimpleQueue[Callable[[], None] | None]()
        self._begun = False

    async def call(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises, after all calls before it."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()

        def tell(result: T | None, error: Exception | None) -> None:
            if outcome.done():
                return
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)  # type: ignore[arg-type]  # without an error there is one

        def run() -> None:
            if outcome.cancelled():
                return
            result: T | None = None
            failure: Exception | None = None
            try:
                result = work()
            except Exception as error:
                # A boundary between threads: whatever it is, the caller gets it.
                failure = error
            # On a loop that was closed meanwhile no caller waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tell, result, failure)

        self._calls.put(run)
        if not self._begun:
            self._begun = True
            Thread(target=self._turn, name=self._name, daemon=True).start()
        return await outcome

    def end(self) -> None:
        """Let the thread end when it has come to the last call."""
        self._calls.put(None)

    def _turn(self) -> None:
        while (run := self._calls.get()) is not None:
            run()
