"""Waiting room: requests queued while all workers of their model are full, served on every change.

The queue (`routing.wait_queue`) gives the order; this room knows each request's attempt and how to
wake it. At a change, the next request is tried on the spot: a worker is found and reserved in the
same step, so no other call can take it. Some requests are hard to place, because they must avoid a
worker; those behind them are tried too, a few of them.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.core.request_context import Priority
from smg_node.fleet.health.backpressure import NEVER
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.wait_queue import LineFull, Ticket, WaitQueue

PASSED_OVER_MAX: Final = 8
"""How many who cannot be served are passed over at once; more would let one change cost too much."""
PAUSE_MIN_S: Final = 0.001

Attempt = Callable[[float], Reservation | None]
"""Find and hold a worker as of now, monotonic seconds, or say that there is none."""


class CapacityView(Protocol):
    """Capacity of one model, as its waiting room asks for it. Times are on the monotonic clock."""

    def lost(self, now_s: float) -> SmgError | None:
        """Return the error for waiting requests if there is no worker left to wait for, None while
        there is.
        """
        ...

    def again_s(self, now_s: float) -> float:
        """Return when something changes without notice; infinity for never."""
        ...

    def patience_s(self) -> float:
        """Return for how long there may be no worker before waiting requests fail."""
        ...


class WaitingRoom:
    """Requests that wait for a worker of one model."""

    def __init__(self, line: WaitQueue, clock: Clock, outlook: CapacityView) -> None:
        self.line = line
        self._outlook = outlook
        self._lost_s: float | None = None
        """Since when there is nobody to wait for."""
        self._clock = clock
        self._waiting: dict[int, tuple[asyncio.Future[Reservation], Attempt]] = {}
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self.line)

    async def wait(self, rank: Priority, deadline_s: float, attempt: Attempt) -> Reservation:
        """Return the result of `attempt`, once it is the request's turn and a worker is free.

        OVERLOADED `overloaded` if the queue is full, or time is up.
        """
        now_s = self._clock.monotonic_s()
        try:
            ticket = self.line.enter(rank, now_s, deadline_s)
        except LineFull as full:
            raise overloaded("too many requests wait already", full.retry_after_s) from None
        future: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()
        self._waiting[ticket.number] = (future, attempt)
        self.serve_soon()
        try:
            async with asyncio.timeout(max(0.0, ticket.until_s - now_s)):
                return await asyncio.shield(future)
        except TimeoutError:
            if future.done():
                return future.result()
            raise self._late(ticket) from None
        except asyncio.CancelledError:
            # Its turn came in the same moment.
            if future.done() and future.exception() is None:
                future.result().release(self._clock.monotonic_s())
            raise
        finally:
            future.cancel()
            self._waiting.pop(ticket.number, None)
            self.line.leave(ticket)

    def serve_soon(self) -> None:
        """Schedule one pass over the queue in a moment, however many changes come until then."""
        if self.line and self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._soon = None
        now_s = self._clock.monotonic_s()
        if self._give_up(now_s):
            return
        passed: list[Ticket] = []
        while len(passed) <= PASSED_OVER_MAX:
            ticket = self.line.next(now_s)
            if ticket is None:
                break
            future, attempt = self._waiting[ticket.number]
            try:
                hold = attempt(now_s)
            except Exception as error:
                # Not a decision: whatever went wrong is raised where it was asked for.
                future.set_exception(error)
                continue
            if hold is None:
                passed.append(ticket)
            else:
                future.set_result(hold)
        for ticket in passed:
            self.line.back(ticket, now_s)
        self._come_again(now_s)

    def _give_up(self, now_s: float) -> bool:
        """Fail all waiting requests if there has been no worker for too long."""
        error = self._outlook.lost(now_s)
        if error is None:
            self._lost_s = None
            return False
        if self._lost_s is None:
            self._lost_s = now_s
        if now_s < self._lost_s + self._outlook.patience_s():
            return False
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        return True

    def _come_again(self, now_s: float) -> None:
        """Pass over the queue again when time alone has changed something."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        again_s = self._outlook.again_s(now_s) if self.line else NEVER
        if self.line and self._lost_s is not None:
            again_s = min(again_s, self._lost_s + self._outlook.patience_s())
        if again_s != NEVER:
            pause_s = max(again_s - now_s, PAUSE_MIN_S)
            self._later = asyncio.get_running_loop().call_later(pause_s, self.serve_soon)

    def _late(self, ticket: Ticket) -> SmgError:
        now_s = self._clock.monotonic_s()
        self.line.expired(now_s)
        waited_s = now_s - ticket.entered_s
        return overloaded(
            f"no worker had room within {waited_s:.0f} s", self.line.drain_s(ticket.rank, now_s)
        )


def overloaded(message: str, retry_after_s: float) -> SmgError:
    """Return the error for a request that finds no room in the queue."""
    return SmgError(
        ErrorKind.OVERLOADED, message, code="overloaded", retry_after_s=round(retry_after_s, 1)
    )
