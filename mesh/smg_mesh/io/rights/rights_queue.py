"""Rights queue: requests that wait for rights that may be on their
way: in order, and none for long.

A request that is called goes on in the next turn of the loop, and one that comes in that turn would
be there before it: with a thousand clients those that waited found nothing time and again. So what
it was called for is charged for it then and there, and given back in the step in which it goes on,
and charges it itself.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Protocol

WAITING_MAX: Final = 10_000
"""For one key; more are refused at once. A crowd of clients comes in one wake-up, before anybody could ask for rights."""


class Awaited(Protocol):
    """Rights to one key that requests wait for."""

    key: str
    left: int
    spent: int
    wanted: int
    window: int


@dataclass(slots=True, eq=False)
class _Waiter:
    cost: int
    heard: asyncio.Future[bool]
    share: Awaited | None = None
    """Which was charged his cost when he was called, in `window`."""
    window: int = 0

    def call(self, share: Awaited) -> None:
        """Let it go on, with what it waited for kept for it till then."""
        share.left -= self.cost
        share.spent += self.cost
        self.share, self.window = share, share.window
        self.heard.set_result(True)

    def take(self) -> None:
        """Give back what was kept; if its window is over, there is nothing of it any more."""
        share, self.share = self.share, None
        if share is not None and share.window == self.window:
            share.left += self.cost
            share.spent -= self.cost


class _Line:
    """Requests that wait for one key, in order, and what all of them need."""

    __slots__ = ("cost", "waiters")

    def __init__(self) -> None:
        # As a set in order: whoever gives up stands anywhere in it.
        self.waiters: OrderedDict[_Waiter, None] = OrderedDict()
        self.cost = 0

    @property
    def first(self) -> _Waiter:
        return next(iter(self.waiters))

    def add(self, waiter: _Waiter) -> None:
        self.waiters[waiter] = None
        self.cost += waiter.cost

    def drop(self, waiter: _Waiter) -> None:
        del self.waiters[waiter]
        self.cost -= waiter.cost


class RightsQueue:
    """Waiting requests, by key."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def awaited(self) -> list[str]:
        """Return the keys that requests wait for."""
        return list(self._lines)

    def costs(self, key: str) -> tuple[int, int]:
        """Return what the first request that waits for a key needs, and what all of
        them need; zeros if none does.
        """
        line = self._lines.get(key)
        return (line.first.cost, line.cost) if line is not None and line.waiters else (0, 0)

    async def wait(self, share: Awaited, cost: int, within_s: float) -> bool:
        """Return whether the share had room for so much within that time; nothing is charged.

        That room is kept until this returns, and not for longer: a caller that wants it charges it
        without another wait.
        """
        line = self._lines.get(share.key)
        if line is None:
            line = self._lines[share.key] = _Line()
        if len(line.waiters) >= WAITING_MAX:
            return False
        waiter = _Waiter(cost, asyncio.get_running_loop().create_future())
        line.add(waiter)
        share.wanted = line.cost
        try:
            async with asyncio.timeout(within_s):
                return await waiter.heard
        except TimeoutError:
            # On a busy loop time may be over in the very turn in which it was called.
            return waiter.share is not None
        finally:
            waiter.take()
            if waiter in line.waiters:
                line.drop(waiter)
                share.wanted = line.cost
            if not line.waiters and self._lines.get(share.key) is line:
                del self._lines[share.key]

    def look(self, share: Awaited) -> None:
        """Let requests go on that the share has room for, in order; the first that
        is too large holds up the rest.
        """
        line = self._lines.get(share.key)
        if line is None:
            return
        while line.waiters and (waiter := line.first).cost <= share.left:
            line.drop(waiter)
            share.wanted = line.cost
            if not waiter.heard.done():
                waiter.call(share)

    def give_up(self, key: str) -> None:
        """Send all away that wait for a key: there is nothing to come."""
        line = self._lines.get(key)
        for waiter in () if line is None else line.waiters:
            if not waiter.heard.done():
                waiter.heard.set_result(False)
