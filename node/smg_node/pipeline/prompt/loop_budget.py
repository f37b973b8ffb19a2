"""Loop budget: FIFO admission of CPU-heavy work, so much a round of the loop."""

import asyncio
from collections import deque


class LoopBudget:
    """Queue of heavy work: callers wait for their turn, in order; between two rounds the loop polls
    its sockets.

    A round has work of size 1 in all, or one piece that is larger. A caller cancelled while it
    waits takes no room.
    """

    def __init__(self) -> None:
        self._line: deque[tuple[asyncio.Future[None], float]] = deque()

    def __len__(self) -> int:
        """Return how many callers wait, including those of the current round."""
        return len(self._line)

    async def turn(self, size: float) -> None:
        """Return when there is room for work of that size."""
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
