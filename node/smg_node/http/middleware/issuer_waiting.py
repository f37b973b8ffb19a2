"""Issuer waiting: requests that wait, a moment and not too many of each issuer, until their token can be judged."""

import asyncio
from typing import Final, cast

from smg_node.access.identity import KeysWantedError

WAIT_MAX_S: Final = 2.0
WAITING_MAX: Final = 64
"""Requests with tokens of one issuer; more are refused at once, and told to come again."""


class IssuerWaiting:
    """The waiting requests of one listener, counted by issuer."""

    def __init__(self, wait_max_s: float = WAIT_MAX_S, waiting_max: int = WAITING_MAX) -> None:
        self._wait_max_s: Final = wait_max_s
        self._waiting_max: Final = waiting_max
        self._waiting: dict[str, int] = {}

    async def wait(self, wanted: KeysWantedError) -> None:
        """Return when what is wanted is there or takes too long; `wanted` itself where too many wait already."""
        issuer = wanted.issuer
        waiting = self._waiting.get(issuer, 0)
        if waiting >= self._waiting_max:
            raise wanted
        self._waiting[issuer] = waiting + 1
        try:
            # It neither raises what the future does nor cancels it: others wait for it too.
            ready = cast("asyncio.Future[None]", wanted.ready)
            await asyncio.wait((ready,), timeout=self._wait_max_s)
        finally:
            left = self._waiting[issuer] - 1
            if left:
                self._waiting[issuer] = left
            else:
                del self._waiting[issuer]
