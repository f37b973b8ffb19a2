"""Stream timeouts: ends calls that stay silent or do not end for too long; one timer an engine
instead of one a stream.

A message costs one look at the clock. A watch looks soon after its nearest limit, a tenth of a second late at
most, whether that limit has moved meanwhile, and sleeps again if it has.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.transport.deadline_queue import TICK_S, Deadlines
from smg_node.engines.transport.grpc_status import DEADLINE_CODE, FIRST_EVENT_CODE

END_S: Final = 0.5
"""How long a call may take to end after its answer is complete; engines take 0.3 ms, at worst 45."""


class Limit(Enum):
    """The limit that a stream has passed."""

    DEADLINE = "deadline"
    FIRST_EVENT = "first_event"
    STALL = "stall"


class Watches:
    """The watches of one engine's calls, with one timer that runs while there are any."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.time = loop.time
        self.deadlines = Deadlines()
        """When each is to look at its limits; whoever adds the soonest has the timer wound."""
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def wind(self) -> None:
        """Start the timer if it does not run."""
        if self._timer is None:
            self._timer = self._loop.call_at(self.time() + TICK_S, self._turn)

    def _turn(self) -> None:
        self._timer = None
        due = self.deadlines.due(self.time())
        # Before any watch looks: what begins meanwhile finds the timer as it is.
        if self.deadlines.waiting:
            self.wind()
        for watch in due:
            watch.look()


class Watch:
    """Calls `bite` once, when a limit is passed; `bitten` says which. Stop it in a `finally`.

    `first_event_s` and `stall_s` are None where the stream may be silent until its deadline.
    """

    __slots__ = (
        "_begun",
        "_bite",
        "_deadline_at",
        "_deadline_s",
        "_first_event_s",
        "_last_at",
        "_stall_s",
        "_watches",
        "bitten",
    )

    def __init__(
        self,
        watches: Watches,
        bite: Callable[[], None],
        *,
        deadline_s: float,
        first_event_s: float | None,
        stall_s: float | None,
    ) -> None:
        self._begin(watches, bite, deadline_s, first_event_s, stall_s)

    def _begin(
        self,
        watches: Watches,
        bite: Callable[[], None],
        deadline_s: float,
        first_event_s: float | None,
        stall_s: float | None,
    ) -> None:
        """Watch from now on. What inherits calls it in place of `__init__`, a detour where both are compiled."""
        now_s = watches.time()
        self._watches = watches
        self._bite = bite
        self._deadline_s = silent_s = deadline_s
        self._last_at = now_s
        self._deadline_at = now_s + deadline_s
        self._first_event_s = first_event_s
        self._stall_s = stall_s
        self._begun = False
        self.bitten: Limit | None = None
        if first_event_s is not None and first_event_s < silent_s:
            silent_s = first_event_s
        if stall_s is not None and stall_s < silent_s:
            silent_s = stall_s
        if watches.deadlines.add(self, now_s + silent_s):
            watches.wind()

    def seen(self) -> None:
        """Note that the stream said something."""
        self._begun = True
        self._last_at = self._watches.time()

    def complete(self) -> None:
        """Note that the answer is complete: the call may take `END_S` to end, and no other limit
        matters.
        """
        self._stall_s = None
        self._deadline_at = self._watches.time() + END_S
        self._look_at(self._deadline_at)

    def stop(self) -> None:
        """Never bite again."""
        self._watches.deadlines.remove(self)

    def past_deadline(self, *, slack_s: float) -> bool:
        """Whether the time is up, or will be within `slack_s`."""
        return self._watches.time() + slack_s >= self._deadline_at

    def allowed_s(self, limit: Limit) -> float:
        """Return how long that limit is, in seconds."""
        allowed_s = {
            Limit.DEADLINE: self._deadline_s,
            Limit.FIRST_EVENT: self._first_event_s,
            Limit.STALL: self._stall_s,
        }[limit]
        assert allowed_s is not None, "what has no limit is never past it"
        return allowed_s

    def _due(self) -> tuple[float, Limit]:
        silent_s, limit = self._first_event_s, Limit.FIRST_EVENT
        if self._begun:
            silent_s, limit = self._stall_s, Limit.STALL
        if silent_s is None or self._last_at + silent_s >= self._deadline_at:
            return self._deadline_at, Limit.DEADLINE
        return self._last_at + silent_s, limit

    def look(self) -> None:
        """Bite if a limit is passed, or look again when one may be."""
        due_at, limit = self._due()
        if self._watches.time() < due_at:
            self._look_at(due_at)
            return
        self.bitten = limit
        self._bite()

    def _look_at(self, due_at: float) -> None:
        if self._watches.deadlines.add(self, due_at):
            self._watches.wind()


def too_late(limit: Limit, allowed_s: float) -> SmgError:
    """Return the error of an engine's answer that passed a limit of that length."""
    said, code = {
        Limit.DEADLINE: (f"the answer was not complete within {allowed_s:g} s", DEADLINE_CODE),
        Limit.FIRST_EVENT: (f"the engine said nothing for {allowed_s:g} s", FIRST_EVENT_CODE),
        Limit.STALL: (f"the engine fell silent for {allowed_s:g} s", "upstream_stalled"),
    }[limit]
    return SmgError(ErrorKind.UPSTREAM_TIMEOUT, said, code=code)
