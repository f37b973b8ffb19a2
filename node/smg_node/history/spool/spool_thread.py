"""Spool thread: the only thread that touches the spool; calls are ordered, appends share a sync.

The thread is a daemon and starts with the first call: a disk that hangs does not keep the process
from ending. The loop is told of every completed write, even if its caller was cancelled, because it
is on the disk.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, NamedTuple, TypeVar

GROUP_MAX: Final = 256
GROUP_BYTES_MAX: Final = 32 << 20
"""So much is written before it is synced, whoever else waits."""

P = TypeVar("P")
T = TypeVar("T")


class _Append(NamedTuple):
    body: bytes
    tell: Callable[[Any, Exception | None], None]


class _Call(NamedTuple):
    run: Callable[[], None]


class SpoolThread(Generic[P]):
    """Runs spool calls; `append` writes bodies and returns their places, or raises OSError for all
    of them.
    """

    def __init__(self, append: Callable[[Sequence[bytes]], Sequence[P]]) -> None:
        self._append: Final = append
        self._jobs: Final = SimpleQueue[_Append | _Call | None]()
        self._begun = self._ended = False

    async def append(self, body: bytes, then: Callable[[P], None]) -> None:
        """Return when it is synced to disk; `then` gets its place, on the loop, also if the caller
        was cancelled.
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[None] = loop.create_future()

        def told(place: Any, error: Exception | None) -> None:
            if error is None:
                then(place)
            if outcome.done():
                return
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(None)

        self._put(_Append(body, _in_loop(loop, told)))
        await outcome

    async def call(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises, after everything before it."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()

        def told(result: Any, error: Exception | None) -> None:
            if outcome.done():
                return
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)

        tell = _in_loop(loop, told)

        def run() -> None:
            try:
                result = work()
            except Exception as error:
                # A door between threads: whatever it is, the caller gets it.
                tell(None, error)
            else:
                tell(result, None)

        self._put(_Call(run))
        return await outcome

    def end(self) -> None:
        """Let the thread end after its last call."""
        self._put(None)
        self._ended = True

    def _put(self, job: "_Append | _Call | None") -> None:
        if self._ended:
            raise OSError("this node ends")
        self._jobs.put(job)
        if not self._begun:
            self._begun = True
            Thread(target=self._turn, name="spool", daemon=True).start()

    def _turn(self) -> None:
        waiting: deque[_Append | _Call | None] = deque()
        while True:
            waiting.append(self._jobs.get())
            with contextlib.suppress(Empty):
                while len(waiting) < GROUP_MAX:
                    waiting.append(self._jobs.get_nowait())
            while waiting:
                job = waiting[0]
                if job is None:
                    return
                if isinstance(job, _Append):
                    self._write_group(_group(waiting))
                else:
                    waiting.popleft()
                    job.run()

    def _write_group(self, group: Sequence[_Append]) -> None:
        try:
            places = self._append([one.body for one in group])
        except Exception as error:
            # A border between threads: the caller that waits for the disk gets its error.
            for one in group:
                one.tell(None, error)
            return
        for one, place in zip(group, places, strict=True):
            one.tell(place, None)


def _group(waiting: "deque[_Append | _Call | None]") -> Sequence[_Append]:
    """Take from the front of the queue all that is written together."""
    group: list[_Append] = []
    size = 0
    while waiting and isinstance(job := waiting[0], _Append):
        if group and size + len(job.body) > GROUP_BYTES_MAX:
            break
        size += len(job.body)
        group.append(job)
        waiting.popleft()
    return group


def _in_loop(
    loop: asyncio.AbstractEventLoop, told: Callable[[Any, Exception | None], None]
) -> Callable[[Any, Exception | None], None]:
    def tell(result: Any, error: Exception | None) -> None:
        # A loop that was closed meanwhile has nobody who waits; what was written is found by the next process.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(told, result, error)

    return tell
