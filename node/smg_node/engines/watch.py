"""Notices when a stream says nothing, or does not end, for too long; one timer an engine instead of one a stream.

A message costs one look at the clock. A watch looks soon after its nearest limit, a tenth of a second late at
most, whether that limit has moved meanwhile, and sleeps again if it has.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.h2.wheel import TICK_S, Wheel
from smg_node.engines.status import DEADLINE_CODE, FIRST_EVENT_CODE

END_S: Final = 0.5
"""How long a call may take to end after its answer is complete; engines take 0.3 ms, at worst 45."""


class Limit(Enum):
    """Which limit a stream has passed."""

    DEADLINE = "deadline"
    FIRST_EVENT = "first_event"
    STALL = "stall"


class Watches:
    """The watches of one engine's calls, looked after by one timer that runs while there are any."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.time = loop.time
        self._loop = loop
        self._wheel: Wheel[Watch] = Wheel()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, watch: "Watch", due_s: float) -> int:
        """Have `watch` look at its limits soon after `due_s`; return by what to `remove` it."""
        now_s = self.time()
        tick = self._wheel.add(watch, due_s, now_s)
        if self._timer is None:
            self._timer = self._loop.call_at(now_s + TICK_S, self._turn)
        return tick

    def remove(self, watch: "Watch", tick: int) -> None:
        """Forget a watch; harmless if it has looked meanwhile."""
        self._wheel.remove(watch, tick)

    def _turn(self) -> None:
        self._timer = None
        for watch in self._wheel.due(self.time()):
            watch.look()
        if len(self._wheel) and self._timer is None:
            self._timer = self._loop.call_at(self.time() + TICK_S, self._turn)


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
        "_tick",
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
        now_s = watches.time()
        self._watches = watches
        self._bite = bite
        self._deadline_s = deadline_s
        self._last_at = now_s
        self._deadline_at = due_s = now_s + deadline_s
        self._first_event_s = first_event_s
        self._stall_s = stall_s
        self._begun = False
        self.bitten: Limit | None = None
        for silent_s in (first_event_s, stall_s):
            if silent_s is not None and now_s + silent_s < due_s:
                due_s = now_s + silent_s
        self._tick = watches.add(self, due_s)

    def seen(self) -> None:
        """Note that the stream said something."""
        self._begun = True
        self._last_at = self._watches.time()

    def complete(self) -> None:
        """Note that the answer is complete: the call may take `END_S` to end, and nothing else matters."""
        watches = self._watches
        watches.remove(self, self._tick)
        self._stall_s = None
        self._deadline_at = watches.time() + END_S
        self._tick = watches.add(self, self._deadline_at)

    def stop(self) -> None:
        """Never bite again."""
        self._watches.remove(self, self._tick)

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
            self._tick = self._watches.add(self, due_at)
            return
        self.bitten = limit
        self._bite()


def too_late(limit: Limit, allowed_s: float) -> SmgError:
    """Return the error of an engine's answer that passed a limit of that length."""
    said, code = {
        Limit.DEADLINE: (f"the answer was not complete within {allowed_s:g} s", DEADLINE_CODE),
        Limit.FIRST_EVENT: (f"the engine said nothing for {allowed_s:g} s", FIRST_EVENT_CODE),
        Limit.STALL: (f"the engine fell silent for {allowed_s:g} s", "upstream_stalled"),
    }[limit]
    return SmgError(ErrorKind.UPSTREAM_TIMEOUT, said, code=code)
