"""Work that is given up in the middle."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


async def interrupt(work: Coroutine[Any, Any, object], until: Callable[[], bool]) -> None:
    """Begin `work`, and cancel it as soon as `until` says so; return when it is over."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        while not until():  # noqa: ASYNC110 - whatever is waited for, nobody tells
            await asyncio.sleep(0)
        task.cancel()


def after_turns(count: int) -> Callable[[], bool]:
    """Return what says so after that many turns of the loop."""
    left = iter(range(count))
    return lambda: next(left, None) is None
