"""Requests that wait for rights that may be on their way: in order, few, and none for long."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

WAITING_MAX: Final = 200
"""For one key; more are refused at once."""


class Awaited(Protocol):
    """What is waited for: rights to one key."""

    key: str
    left: int
    wanted: int


@dataclass(slots=True)
class _Waiter:
    cost: int
    heard: asyncio.Future[bool]


class Waiting:
    """Who waits for which key."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[_Waiter]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def awaited(self) -> list[str]:
        """Return the keys that somebody waits for."""
        return list(self._lines)

    def costs(self, key: str) -> tuple[int, int]:
        """Return what the first who waits for a key needs, and what all of them need; zeros if nobody does."""
        line = self._lines.get(key)
        return (line[0].cost, sum(waiter.cost for waiter in line)) if line else (0, 0)

    async def wait(self, share: Awaited, cost: int, within_s: float) -> bool:
        """Return whether the share had room for so much within that time; nothing is charged."""
        line = self._lines.setdefault(share.key, deque())
        if len(line) >= WAITING_MAX:
            return False
        waiter = _Waiter(cost, asyncio.get_running_loop().create_future())
        line.append(waiter)
        _tell(share, line)
        try:
            async with asyncio.timeout(within_s):
                return await waiter.heard
        except TimeoutError:
            return False
        finally:
            if waiter in line:
                line.remove(waiter)
                _tell(share, line)
            if not line and self._lines.get(share.key) is line:
                del self._lines[share.key]

    def look(self, share: Awaited) -> None:
        """Let those go whom the share has room for, in order; the first that is too large holds up the rest."""
        line = self._lines.get(share.key)
        left = share.left
        while line and line[0].cost <= left:
            waiter = line.popleft()
            left -= waiter.cost
            _tell(share, line)
            if not waiter.heard.done():
                waiter.heard.set_result(True)

    def give_up(self, key: str) -> None:
        """Send all away who wait for a key: there is nothing to come."""
        for waiter in self._lines.get(key, ()):
            if not waiter.heard.done():
                waiter.heard.set_result(False)


def _tell(share: Awaited, line: deque[_Waiter]) -> None:
    """Let whoever asks for rights know how much is waited for."""
    share.wanted = sum(waiter.cost for waiter in line)
