"""End of a process: however it goes, it comes.

Taking a node down is a row of steps, of connections, files, threads and tasks that may each hang: a library's thread that
is joined when the interpreter ends, a task that lost a cancellation. Whoever waits for the process would wait until it is
killed, and never learn why. So a thread of its own sees to it that the end comes, and names what was left.
"""

import asyncio
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

PATIENCE_S: Final = 30.0
"""After the drain. Orchestrators give a process 15 s for what comes then; nobody waits for a store for longer."""
_ERRORS: Final = 2
_SAID_WITHIN_MS: Final = 1000
_NAMED_MAX: Final = 12
_NAME_MAX_CHARACTERS: Final = 120


class EndGuard:
    """Ends this process a while after `begin`, if it has not ended by itself."""

    def __init__(
        self,
        *,
        patience_s: float = PATIENCE_S,
        leave: Callable[[int], object] = os._exit,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._patience_s: Final = patience_s
        self._leave: Final = leave
        self._sleep: Final = sleep
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, code: int) -> None:
        """Wait from now on; `code` is what the process then ends with. To be called in the loop."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, args=(code,), name="end", daemon=True).start()

    def _run(self, code: int) -> None:
        self._sleep(self._patience_s)
        try:
            left = ", ".join(left_over(self._loop)) or "nothing that is known"
            text = f"smg-node: it did not end within {self._patience_s:g} s; left behind: {left}\n"
            _say(text)
        finally:
            self._leave(code)


def left_over(loop: asyncio.AbstractEventLoop | None) -> list[str]:
    """Return the threads that an interpreter waits for and the tasks of a loop, each with where it is."""
    frames = sys._current_frames()
    found = [
        f"thread {thread.name} at {_place(frames.get(thread.ident or 0))}"
        for thread in threading.enumerate()
        if thread is not threading.current_thread() and not thread.daemon
    ]
    found += [f"task {task.get_name()} at {_waits_at(task)}" for task in _tasks(loop)]
    more = len(found) - _NAMED_MAX
    clipped = [text[:_NAME_MAX_CHARACTERS] for text in found[:_NAMED_MAX]]
    return [*clipped, f"{more} more"] if more > 0 else clipped


def _say(text: str) -> None:
    """Write to the standard error stream, unless nobody reads that: then writing would wait, perhaps for ever."""
    polled = select.poll()
    polled.register(_ERRORS, select.POLLOUT)
    # A pipe that takes something takes a page, which is more than this.
    if polled.poll(_SAID_WITHIN_MS):
        os.write(_ERRORS, text.encode("utf-8", "backslashreplace"))


def _tasks(loop: asyncio.AbstractEventLoop | None) -> Iterable["asyncio.Task[object]"]:
    if loop is None:
        return ()
    try:
        return sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    except RuntimeError:
        # They change while they are read, which is seen as little as that they end.
        return ()


def _waits_at(task: "asyncio.Task[object]") -> str:
    stack = task.get_stack(limit=1)
    return _place(stack[-1] if stack else None)


def _place(frame: object) -> str:
    code = getattr(frame, "f_code", None)
    if code is None:
        return "an unknown place"
    return f"{os.path.basename(code.co_filename)}:{getattr(frame, 'f_lineno', 0)} {code.co_name}"
