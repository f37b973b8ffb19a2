"""Retry of store operations with exponential backoff and jitter, while the store is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from smg_node.core.ports import Clock, Rng
from smg_storage.errors import StoreError, StoreErrorKind

FIRST_WAIT_S: Final = 0.1
MOST_WAIT_S: Final = 2.0
"""So long after a store is back whoever waited for it goes on, at most."""

T = TypeVar("T")


class StoreRetry:
    """Repeats a store operation until it succeeds."""

    def __init__(
        self,
        clock: Clock,
        rng: Rng,
        *,
        first_wait_s: float = FIRST_WAIT_S,
        most_wait_s: float = MOST_WAIT_S,
    ) -> None:
        self._clock: Final = clock
        self._rng: Final = rng
        self._first_wait_s: Final = first_wait_s
        self._most_wait_s: Final = most_wait_s

    async def on(self, ask: Callable[[], Awaitable[T]], *, until_s: float = float("inf")) -> T:
        """Return what `ask` returns, called again while the store is unavailable; UNAVAILABLE after
        `until_s`.

        Any other error is raised at once. `until_s` is on the monotonic clock.
        """
        wait_s = self._first_wait_s
        while True:
            try:
                return await ask()
            except StoreError as error:
                late = self._clock.monotonic_s() >= until_s
                if error.kind is not StoreErrorKind.UNAVAILABLE or late:
                    raise
            await asyncio.sleep(wait_s * (0.5 + self._rng.random()))
            wait_s = min(2 * wait_s, self._most_wait_s)
