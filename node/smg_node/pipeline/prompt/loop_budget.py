"""Lets so much work be done in each round of the loop, so that what comes between is not kept waiting for all of it."""

import asyncio
from collections import deque


class LoopBudget:
    """Who has something to do that takes a while waits for its turn, in order; between two rounds the loop looks at its sockets.

    A round has work of size 1 in all, or one piece that is larger. Who is cancelled while it waits takes no room.
    """

    def __init__(self) -> None:
        self._line: deque[tuple[asyncio.Future[None], float]] = deque()

    def __len__(self) -> int:
        """Return how many wait, those whose turn it is included."""
        return len(self._line)

    async def turn(self, size: float) -> None:
        """Return when it is the turn of work that large."""
        loop, line = asyncio.get_running_loop(), self._line
        waiter = loop.create_future()
        line.append((waiter, size))
        if len(line) == 1:
            loop.call_soon(self._next)
        await waiter

    def _next(self) -> None:
        line, left = self._line, 1.0
        while line and line[0][0].done():
            # Those of the round before, and who did not want to wait.
            line.popleft()
        for waiter, size in line:
            if waiter.done():
                continue
            if size > left < 1:
                break
            waiter.set_result(None)
            left -= size
        if line:
            # They stay in line until the next round, whose business it is to look for others.
            asyncio.get_running_loop().call_soon(self._next)
