"""Child process that computes one result; the memory it took goes with the child.

Meanwhile this process can do something else: the child has a core of its own where there is one. Call
it before threads are started, and before anything is written to a buffer that both would flush.
"""

import os
import pickle
import sys
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ChildProcess(Generic[T]):
    """One child at work. `work` returns what is sent here, or an exit code if there is nothing to
    send.

    What it writes to stdout and stderr is seen as if this process wrote it.
    """

    def __init__(self, work: Callable[[], T | int]) -> None:
        self._reader, writer = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            # Never returns: the rest of the program belongs to the parent alone.
            _work_and_leave(work, self._reader, writer)
        os.close(writer)

    def result(self) -> T | int:
        """Wait for the child; return what it sent, or the exit code it left with.

        ChildProcessError if it was killed.
        """
        with open(self._reader, "rb") as pipe:
            sent = pipe.read()
        _, status = os.waitpid(self._child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            raise ChildProcessError(f"the child process was killed by signal {-code}")
        if code != 0 or not sent:
            return code
        found: T = pickle.loads(sent)
        return found


def _work_and_leave(work: Callable[[], T | int], reader: int, writer: int) -> None:
    code = 1
    try:
        os.close(reader)
        found = work()
        if isinstance(found, int):
            code = found
        else:
            with open(writer, "wb") as pipe:
                pickle.dump(found, pipe, pickle.HIGHEST_PROTOCOL)
            code = 0
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        # A boundary: nothing may leave this frame, or the program would run twice from here on.
        code = 1
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(code)
