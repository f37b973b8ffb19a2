"""Begin budget: at most so many requests of a listener begin in one turn of the event loop, in order.

A crowd brings hundreds of requests in one look at the sockets. If all of them began before the next
look, no engine would hear of the first before the last one was read, checked and placed, and no
running stream would get a token meanwhile: a crowd of a thousand is two tenths of a second. So a
turn begins `BEGIN_MAX` of them. In the next one what they asked of engines is written and nothing
begins; then sockets are looked at, first tokens and those of running streams go out, and the next
ones begin. What waits is one request a connection at most, and costs nothing but its place.

While fewer come the budget costs a request a count: it is renewed only when it is spent, by
whatever number of turns.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

BEGIN_MAX: Final = 32
"""Some 5 ms of work: a quarter of the time between two tokens of a quick stream. As many calls go to an engine in one write:
each write wakes it, which costs as much as a tenth of a request."""


class Waiting(Protocol):
    """A connection whose first request waits to begin."""

    def begin(self) -> bool:
        """Begin it; false if it is no longer there."""
        ...


class BeginBudget:
    """Budget of one listener: who begins a request takes of `left`, or waits in line."""

    __slots__ = ("_line", "left")

    def __init__(self) -> None:
        self.left = BEGIN_MAX
        """How many requests may begin before the loop has to go round."""
        self._line: deque[Waiting] = deque()

    def __len__(self) -> int:
        """Return how many connections wait."""
        return len(self._line)

    def spend(self) -> bool:
        """Take one of what is left; false if the request has to wait in line."""
        if not self.left:
            return False
        self.left -= 1
        if not self.left:
            self.spent()
        return True

    def spent(self) -> None:
        """Have it renewed: nothing is left."""
        # Behind all that begin in this turn, and what they have the loop do in the next one, which is to ask engines.
        asyncio.get_running_loop().call_soon(self._turned)

    def wait(self, connection: Waiting) -> None:
        """Have a connection's request begin in its turn."""
        self._line.append(connection)

    def _turned(self) -> None:
        asyncio.get_running_loop().call_soon(self._renew)

    def _renew(self) -> None:
        """Let those begin who waited longest, and leave the rest to those who come now."""
        line = self._line
        self.left = BEGIN_MAX
        while line and self.left:
            self.left -= line.popleft().begin()
        if not self.left:
            self.spent()
