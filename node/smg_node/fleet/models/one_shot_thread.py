"""One-shot thread: runs large work in a thread of its own, so that memory libraries keep per thread
is freed at its end.

The fast encoder keeps 16 MB of words for every thread that ever encoded, until the thread ends. Those of an event loop's pool
never do, and the one that read a model may never encode again.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from smg_node.process_memory import trim

DoneT = TypeVar("DoneT")


def in_own_thread(work: Callable[[], DoneT]) -> asyncio.Future[DoneT]:
    """Return what `work` will return, in a thread of its own; when that has ended, freed memory goes back to the system."""
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, thread_name_prefix="reading")
    done = loop.run_in_executor(thread, work)

    def give_back() -> None:
        thread.shutdown(wait=True)
        trim()

    def ended(_: asyncio.Future[DoneT]) -> None:
        # When a process ends, the pool takes no more work, and no memory needs to be given back.
        with suppress(RuntimeError):
            loop.run_in_executor(None, give_back)

    # The thread ends a moment after its work, and that has to be waited for.
    done.add_done_callback(ended)
    return done
