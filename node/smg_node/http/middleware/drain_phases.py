"""Drain phases: state machine of a graceful shutdown, five phases, with time passed in. Pure.

    serving ─begin─▶ settling ─settle_s─▶ closing ─idle or grace_s─▶ cutting ─idle or cut_s─▶ over
                         └───────── hurry ──────────────▶┘

Settling: readiness says no, everything else goes on while balancers notice. Where work still comes,
they have not: then it lasts until a second without new work, at most three times as long. Closing:
no new connections, late requests are refused with Retry-After, running ones may finish. Cutting:
running requests end with `server_shutting_down`. A second signal hurries to cutting from anywhere.

A serving node may also be *set aside* by its operator: readiness says no at once, new work is refused
after `settle_s`, running work goes on, listeners and the operator's routes stay. That can be taken back.
A node that is told to stop after that does not settle again: balancers have had their time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

CUT_S: Final = 2.0
"""How long a cut request may take to tell its client; after that its connection is closed anyway."""


QUIET_S: Final = 1.0
"""A balancer that still sends work does so more often than this; a client that never moves on must not keep the node."""
LATE_MOST: Final = 2
"""So many times longer may balancers take than they were given: on a machine so busy that a look of theirs takes seconds."""


class Phase(IntEnum):
    """Phase of the drain; later phases compare greater."""

    SERVING = 0
    SETTLING = 1
    CLOSING = 2
    CUTTING = 3
    OVER = 4


class Step(Enum):
    """Action for the server to take now."""

    CLOSE_LISTENERS = "close_listeners"
    CUT_REQUESTS = "cut_requests"


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """Seconds until new work is refused, until open work is cut (None: never), and for both from
    the start.
    """

    settle_left_s: float
    cut_left_s: float | None
    patience_s: float


class Drain:
    """Drain of one server. Times are seconds on the monotonic clock."""

    def __init__(self, *, settle_s: float, grace_s: float) -> None:
        self._settle_s = settle_s
        self._grace_s = grace_s
        self._ends_s: float | None = None
        self._since_s = 0.0
        self._cut_s = 0.0
        """When what is open is cut off, once the farewell has begun."""
        self._came_s: float | None = None
        """When work last came that should have gone elsewhere."""
        self._aside_since_s: float | None = None
        self.phase = Phase.SERVING
        self.refusing = False
        """Whether late requests are refused and connections closed after their answer."""
        self.aside = False
        """Whether an operator set this node aside."""
        self.draining = False
        """Whether readiness must say no."""

    def retune(self, *, settle_s: float, grace_s: float) -> None:
        """Apply other times to phases that have not begun."""
        self._settle_s = settle_s
        self._grace_s = grace_s

    def set_aside(self, now_s: float, *, on: bool) -> None:
        """Take the node out of service without ending it, or back; doing either twice changes nothing."""
        if not on:
            self._aside_since_s = self._came_s = None
        elif self._aside_since_s is None:
            self._aside_since_s = now_s
        self.aside = on
        self.draining = on or self.phase is not Phase.SERVING

    def refuses_work(self, now_s: float) -> bool:
        """Whether requests of tenants are refused: the node is set aside, and the settling time is
        over.
        """
        since_s = self._aside_since_s
        return self.refusing or (since_s is not None and now_s >= self._settled_s(since_s))

    def takes_work(self, now_s: float) -> bool:
        """Return whether new work is accepted now; its arrival shows that balancers have not
        noticed yet.
        """
        if self.refuses_work(now_s):
            return False
        self._came_s = now_s
        if self.phase is Phase.SETTLING:
            self._ends_s = self._settled_s(self._since_s)
        return True

    def _settled_s(self, since_s: float) -> float:
        """Return when work is not accepted any more, by the arrivals so far."""
        first_s = since_s + self._settle_s
        last_s = first_s + min(LATE_MOST * self._settle_s, self._grace_s)
        late_s = first_s if self._came_s is None else self._came_s + QUIET_S
        return min(max(first_s, late_s), last_s)

    def begin(self, now_s: float) -> None:
        """Start the drain; does nothing if it has begun."""
        if self.phase is Phase.SERVING:
            self._since_s = now_s if self._aside_since_s is None else self._aside_since_s
            self._cut_s = max(now_s, self._since_s + self._settle_s) + self._grace_s
            self._enter(Phase.SETTLING, self._settled_s(self._since_s))

    def advance(self, now_s: float, inflight: int, *, hurried: bool = False) -> Sequence[Step]:
        """Move as far as time and `inflight` requests allow; return what to do, in order."""
        steps: list[Step] = []
        while (step := self._next(now_s, inflight, hurried=hurried)) is not None:
            if step is Phase.CLOSING:
                steps.append(Step.CLOSE_LISTENERS)
                self._enter(step, self._cut_s)
            elif step is Phase.CUTTING:
                steps.append(Step.CUT_REQUESTS)
                self._enter(step, now_s + CUT_S)
            else:
                self._enter(step, None)
        return steps

    def wait_s(self, now_s: float) -> float | None:
        """Return how long nothing happens by itself; None once it is over or before it began."""
        return None if self._ends_s is None else max(0.0, self._ends_s - now_s)

    def times(self, now_s: float) -> DrainTimes:
        """Return how long the drain in progress will take, or a future one would."""
        left_s = self.wait_s(now_s)
        patience_s = self._settle_s + self._grace_s
        match self.phase:
            case Phase.SERVING:
                since_s = self._aside_since_s
                settle_s = 0.0 if since_s is None else max(0.0, self._settled_s(since_s) - now_s)
                return DrainTimes(settle_s, None, patience_s)
            case Phase.SETTLING:
                assert left_s is not None
                return DrainTimes(left_s, self._cut_s - now_s, patience_s)
            case Phase.CLOSING:
                return DrainTimes(0.0, left_s, patience_s)
            case _:
                return DrainTimes(0.0, 0.0, patience_s)

    def _next(self, now_s: float, inflight: int, *, hurried: bool) -> Phase | None:
        late = hurried or (self._ends_s is not None and now_s >= self._ends_s)
        match self.phase:
            case Phase.SETTLING if late:
                return Phase.CLOSING
            case Phase.CLOSING if inflight == 0:
                return Phase.OVER
            case Phase.CLOSING if late:
                return Phase.CUTTING
            # Hurry cannot shorten the cut: the clients are being told.
            case Phase.CUTTING if inflight == 0 or (
                self._ends_s is not None and now_s >= self._ends_s
            ):
                return Phase.OVER
            case _:
                return None

    def _enter(self, phase: Phase, ends_s: float | None) -> None:
        assert phase > self.phase
        self.phase = phase
        self.draining = True
        self.refusing = phase >= Phase.CLOSING
        self._ends_s = ends_s
