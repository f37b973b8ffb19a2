"""Event iterator: a run's events as an async generator, for readers that pull batches.

The run goes on in a task of its own, a few batches ahead of its reader at most. The task belongs to the reader: it
has ended, and with it the calls of the run, when the generator has.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from smg_node.core.generation.events import Event
from smg_node.pipeline.generation.event_sink import Ready, Receive

AHEAD_MAX: Final = 8
"""Batches that wait for the reader; so many stop the run, which is back-pressure."""

Tell: TypeAlias = Callable[[Receive, Ready], Coroutine[Any, Any, None]]


class _Basin:
    """Bounded buffer of batches between the run and its reader."""

    def __init__(self) -> None:
        self.batches: deque[Sequence[Event]] = deque()
        self.news = asyncio.Event()
        self.room = asyncio.Event()

    def receive(self, batch: Sequence[Event]) -> bool:
        self.batches.append(batch)
        self.news.set()
        return len(self.batches) >= AHEAD_MAX

    async def ready(self) -> None:
        while len(self.batches) >= AHEAD_MAX:
            self.room.clear()
            await self.room.wait()

    def ended(self, _task: "asyncio.Task[None]") -> None:
        self.news.set()


async def pulled(tell: Tell) -> AsyncGenerator[Sequence[Event], None]:
    """Yield the events that `tell` sends; raise what it raises."""
    basin = _Basin()
    task = asyncio.get_running_loop().create_task(tell(basin.receive, basin.ready), name="run")
    task.add_done_callback(basin.ended)
    try:
        while not task.done() or basin.batches:
            while basin.batches:
                batch = basin.batches.popleft()
                basin.room.set()
                yield batch
            basin.news.clear()
            if not task.done():
                await basin.news.wait()
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
