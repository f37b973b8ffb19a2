"""Loop turns: one exchange at a time does one piece of work in each turn of the event loop.

A piece takes milliseconds to build or to merge. Sixteen peers that join at once must not have theirs built
between two looks at the socket, or the members would take this node for a stalled one.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """Lets one piece of work be done in each turn of the loop. One for all exchanges of a node."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()

    async def take(self, work: Callable[[], T]) -> T:
        """Do the work when it is its turn, and return what it returns in a later turn of the loop."""
        async with self._one:
            done = work()
            await asyncio.sleep(0)
            return done
