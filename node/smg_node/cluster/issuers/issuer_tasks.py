"""Issuer tasks: what is asked of issuers beside requests, owned by one loop of the process."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

Loop: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class IssuerTasks:
    """Tasks that end with `run`."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Start a task; False where nothing runs yet, or any more."""
        if self._group is None:
            work.close()
            return False
        self._group.create_task(work)
        return True

    async def run(self, loops: Sequence[Loop]) -> None:
        """Run these, and what is started meanwhile, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for loop in loops:
                    group.create_task(loop())
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None
