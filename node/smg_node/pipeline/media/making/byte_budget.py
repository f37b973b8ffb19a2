"""Byte budget: how much memory the media of all requests under way may take together.

Who comes while it is spent is told to come back. Who cannot be told so any more (tools have run for it, or half of its
answer is out) waits in line, and goes before all who come later. Where all that is taken is held by those who wait,
nobody else would ever give anything back: then the first in line is given what it needs, beyond the bound.
"""

import asyncio
from collections import deque
from typing import Final, NamedTuple

from smg_node.core.errors import ErrorKind, SmgError

RETRY_AFTER_S: Final = 1.0
"""What a client is told where the budget is spent: a picture is worked on for well under a second."""
KNOB: Final = "media.inflight_bytes"


class _Waiter(NamedTuple):
    """Who waits for `size` bytes, and has `already` so many."""

    size: int
    already: int
    granted: "asyncio.Future[None]"


class ByteBudget:
    """Bytes that are taken and given back; `most` may change at any time. Used on the loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[_Waiter] = deque()
        self.taken = 0

    @property
    def most(self) -> int:
        """How many bytes there are."""
        return self._most

    @most.setter
    def most(self, most: int) -> None:
        self._most = most
        self._serve()

    @property
    def waiting(self) -> int:
        """How many requests wait in line."""
        return len(self._waiting)

    def take(self, size: int, already: int = 0) -> None:
        """Take `size` bytes for a request that has `already` so many.

        TOO_LARGE where the request alone would have more than there are, RATE_LIMITED with a time where others have
        them now, or wait for them.
        """
        self.check(size, already)
        if self.taken + size > self._most or (size and self._waiting):
            raise SmgError(
                ErrorKind.RATE_LIMITED,
                f"the media of other requests take the {self._most} bytes that are allowed ({KNOB}); try again",
                code="media_busy",
                retry_after_s=RETRY_AFTER_S,
            )
        self.taken += size

    async def take_in_line(self, size: int, already: int, patience_s: float) -> None:
        """Take as `take` does, when there is room, waiting for that in line for at most `patience_s`."""
        try:
            self.take(size, already)
        except SmgError as error:
            if error.kind is not ErrorKind.RATE_LIMITED or patience_s <= 0:
                raise
            try:
                async with asyncio.timeout(patience_s):
                    await self._granted(size, already)
            except TimeoutError:
                raise error from None

    def check(self, size: int, already: int = 0) -> None:
        """Raise TOO_LARGE where a request that has `already` so many bytes may not have `size` more, ever."""
        assert size >= 0, "what is taken is an amount"
        if already + size > self._most:
            raise SmgError(
                ErrorKind.TOO_LARGE,
                f"the pictures of this request take {already + size} bytes while they are worked on; at most"
                f" {self._most} are allowed ({KNOB})",
                code="media_too_large",
            )

    def add(self, size: int) -> None:
        """Take bytes for a request that has begun and is not to be refused any more."""
        assert size >= 0, "what is taken is an amount"
        self.taken += size

    def give(self, size: int) -> None:
        """Give bytes back, to who waits first."""
        assert 0 <= size <= self.taken, "only what was taken is given back"
        self.taken -= size
        self._serve()

    async def _granted(self, size: int, already: int) -> None:
        waiter = _Waiter(size, already, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._serve()
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter.granted.done() and not waiter.granted.cancelled():
                # It was given in the very round in which nobody wanted it any more.
                self.give(size)
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
                self._serve()
            raise

    def _serve(self) -> None:
        """Give those in line what they wait for, one after the other, as far as there is room."""
        waiting = self._waiting
        while waiting:
            first = waiting[0]
            stuck = self.taken <= sum([each.already for each in waiting])
            if self.taken + first.size > self._most and not stuck:
                return
            waiting.popleft()
            if not first.granted.done():
                self.taken += first.size
                first.granted.set_result(None)
