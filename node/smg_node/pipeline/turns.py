"""Lets one piece of work be done in each round of the loop, so that what comes between is not kept waiting for all."""

import asyncio
from collections import deque


class Turns:
    """Who has something to do that takes a while waits for its turn; each round of the loop has one, in order.

    Between two turns the loop looks at its sockets. Who is cancelled while it waits loses its turn, and nobody another.
    """

    def __init__(self) -> None:
        self._line: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._line)

    async def turn(self) -> None:
        """Return when it is one's turn."""
        loop, line = asyncio.get_running_loop(), self._line
        waiter = loop.create_future()
        line.append(waiter)
        if len(line) == 1:
            loop.call_soon(self._next)
        await waiter

    def _next(self) -> None:
        line = self._line
        while line:
            waiter = line[0]
            if waiter.done():
                line.popleft()
                continue
            waiter.set_result(None)
            # It stays in line until the next round, whose business it is to look for another.
            asyncio.get_running_loop().call_soon(self._next)
            return
