"""Calls whose answer is complete, given a moment to end by themselves.

Resetting a stream that is about to end looks like an attack to some servers and proxies (they count
premature resets), so a call is dropped only if its status has not come within a second or two.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

LINGER_S: Final = 1.0
LINGERING_MAX: Final = 10_000
"""More at once than a process serves in a second; the rest is dropped at once."""


class Linger:
    """Drops calls a little later; one timer for all of them."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, drop: Callable[[], None]) -> None:
        """Call `drop` in one to two seconds; it must be harmless for a call that has ended."""
        if len(self._waiting) >= LINGERING_MAX:
            drop()
            return
        loop = asyncio.get_running_loop()
        self._waiting.append((loop.time() + LINGER_S, drop))
        if self._timer is None:
            self._timer = loop.call_later(LINGER_S, self._sweep, loop)

    def close(self) -> None:
        """Drop everything now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            self._waiting.popleft()[1]()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            self._waiting.popleft()[1]()
        if self._waiting:
            self._timer = loop.call_later(LINGER_S, self._sweep, loop)
