"""Parallel calls: runs many coroutines, so many at once; the first failure cancels the rest."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any


async def side_by_side(
    calls: Sequence[Callable[[], Coroutine[Any, Any, None]]], *, at_once: int
) -> None:
    """Return when all have returned; at most `at_once` of them run at a time.

    The first failure cancels all others, and is raised unchanged when they have ended.
    """
    waiting = list(reversed(calls))

    async def work() -> None:
        while waiting:
            await waiting.pop()()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(calls))):
                group.create_task(work(), name="leg")
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0]  # noqa: B904  # its own cause is what tells why
