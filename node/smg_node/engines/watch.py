"""Notices when a stream says nothing, or does not end, for too long; one timer a stream instead of one a message.

A message costs one look at the clock. The timer fires early enough for the nearest limit, looks whether
that limit has moved meanwhile, and sleeps again if it has.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.status import DEADLINE_CODE, FIRST_EVENT_CODE
from smg_node.engines.transport import MessageStream, TransportError

END_S: Final = 0.5
"""How long a call may take to end after its answer is complete; engines take 0.3 ms, at worst 45."""


class Limit(Enum):
    """Which limit a stream has passed."""

    DEADLINE = "deadline"
    FIRST_EVENT = "first_event"
    STALL = "stall"


class Watch:
    """Calls `bite` once, when a limit is passed; `bitten` says which. Stop it in a `finally`.

    `first_event_s` and `stall_s` are None where the stream may be silent until its deadline.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bite: Callable[[], None],
        *,
        deadline_s: float,
        first_event_s: float | None,
        stall_s: float | None,
    ) -> None:
        self._time = loop.time
        self._loop = loop
        self._bite = bite
        self._deadline_s = deadline_s
        self._deadline_at = self._last_at = loop.time()
        self._deadline_at += deadline_s
        self._first_event_s = first_event_s
        self._stall_s = stall_s
        self._begun = False
        self.bitten: Limit | None = None
        self._timer = loop.call_at(
            min(self._due(begun=begun)[0] for begun in (False, True)), self._look
        )

    def seen(self) -> None:
        """Note that the stream said something."""
        self._begun = True
        self._last_at = self._time()

    def stop(self) -> None:
        """Never bite again."""
        self._timer.cancel()

    def past_deadline(self, *, slack_s: float) -> bool:
        """Whether the time is up, or will be within `slack_s`."""
        return self._time() + slack_s >= self._deadline_at

    def allowed_s(self, limit: Limit) -> float:
        """Return how long that limit is, in seconds."""
        allowed_s = {
            Limit.DEADLINE: self._deadline_s,
            Limit.FIRST_EVENT: self._first_event_s,
            Limit.STALL: self._stall_s,
        }[limit]
        assert allowed_s is not None, "what has no limit is never past it"
        return allowed_s

    def _due(self, *, begun: bool) -> tuple[float, Limit]:
        silent_s, limit = (
            (self._stall_s, Limit.STALL) if begun else (self._first_event_s, Limit.FIRST_EVENT)
        )
        if silent_s is None or self._last_at + silent_s >= self._deadline_at:
            return self._deadline_at, Limit.DEADLINE
        return self._last_at + silent_s, limit

    def _look(self) -> None:
        due_at, limit = self._due(begun=self._begun)
        if self._time() < due_at:
            self._timer = self._loop.call_at(due_at, self._look)
            return
        self.bitten = limit
        self._bite()


async def ends_itself(stream: MessageStream) -> bool:
    """Wait a moment for a call whose answer is complete; return whether it has ended.

    What it still says is not wanted, and its status no longer matters.
    """
    try:
        async with asyncio.timeout(END_S):
            async for _ in stream:
                pass
    except TransportError:
        return True
    except TimeoutError:
        return False
    return True


def too_late(limit: Limit, allowed_s: float) -> SmgError:
    """Return the error of an engine's answer that passed a limit of that length."""
    said, code = {
        Limit.DEADLINE: (f"the answer was not complete within {allowed_s:g} s", DEADLINE_CODE),
        Limit.FIRST_EVENT: (f"the engine said nothing for {allowed_s:g} s", FIRST_EVENT_CODE),
        Limit.STALL: (f"the engine fell silent for {allowed_s:g} s", "upstream_stalled"),
    }[limit]
    return SmgError(ErrorKind.UPSTREAM_TIMEOUT, said, code=code)
