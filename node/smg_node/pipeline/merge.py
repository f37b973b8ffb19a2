"""Many streams read as one, a bounded number at a time.

The tasks belong to the reader: when it stops early, all of them are cancelled and awaited before its
`finally` is over. (A TaskGroup cannot do this around a `yield`: closing the generator would surface
as an exception group.)
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

T = TypeVar("T")

QUEUE_MAX: Final = 8
"""Batches waiting for the reader; a full queue stops the sources, which is back-pressure."""


async def merged(
    sources: Sequence[Callable[[], AsyncGenerator[T, None]]], *, at_once: int
) -> AsyncGenerator[T, None]:
    """Yield what the sources yield, as it comes; at most `at_once` of them run at a time.

    The first failure ends everything and is raised here.
    """
    queue: asyncio.Queue[T | BaseException | None] = asyncio.Queue(QUEUE_MAX)
    waiting = list(reversed(sources))
    loop = asyncio.get_running_loop()

    async def work() -> None:
        try:
            while waiting:
                async with aclosing(waiting.pop()()) as items:
                    async for item in items:
                        await queue.put(item)
            await queue.put(None)
        except Exception as error:
            # Not a decision: every failure is handed to the reader, who raises it.
            await queue.put(error)

    workers = min(at_once, len(sources))
    tasks = [loop.create_task(work(), name="leg") for _ in range(workers)]
    try:
        while workers:
            item = await queue.get()
            if item is None:
                workers -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
