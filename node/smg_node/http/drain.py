"""How a node leaves without cutting anybody off: a machine of five phases, and no clock of its own.

    serving ─begin─▶ settling ─settle_s─▶ closing ─idle or grace_s─▶ cutting ─idle or cut_s─▶ over
                         └───────── hurry ──────────────▶┘

Settling: readiness says no, everything else goes on while balancers notice. Closing: no new
connections, late requests are refused with a hint to come again, running ones may finish. Cutting:
what still runs is told `server_shutting_down`. A second signal hurries to cutting from anywhere.

A serving node may also be *set aside* by its operator: readiness says no at once, new work is refused
after `settle_s`, running work goes on, listeners and the operator's routes stay. That can be taken back.
"""

from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import Final

CUT_S: Final = 2.0
"""How long a cut request may take to tell its client; after that its connection is closed anyway."""


class Phase(IntEnum):
    """How far the farewell is; later phases compare greater."""

    SERVING = 0
    SETTLING = 1
    CLOSING = 2
    CUTTING = 3
    OVER = 4


class Step(Enum):
    """What the server must do now."""

    CLOSE_LISTENERS = "close_listeners"
    CUT_REQUESTS = "cut_requests"


class Drain:
    """The farewell of one server. Times are seconds on the monotonic clock."""

    def __init__(self, *, settle_s: float, grace_s: float) -> None:
        self._settle_s = settle_s
        self._grace_s = grace_s
        self._ends_s: float | None = None
        self._aside_since_s: float | None = None
        self.phase = Phase.SERVING
        self.refusing = False
        """Whether late requests are refused and connections closed after their answer."""
        self.aside = False
        """Whether an operator set this node aside."""

    def retune(self, *, settle_s: float, grace_s: float) -> None:
        """Take other times for phases that have not begun."""
        self._settle_s = settle_s
        self._grace_s = grace_s

    @property
    def draining(self) -> bool:
        """Whether readiness must say no."""
        return self.phase is not Phase.SERVING or self.aside

    def set_aside(self, now_s: float, *, on: bool) -> None:
        """Take the node out of service without ending it, or back; doing either twice changes nothing."""
        if not on:
            self._aside_since_s = None
        elif self._aside_since_s is None:
            self._aside_since_s = now_s
        self.aside = on

    def refuses_work(self, now_s: float) -> bool:
        """Whether requests of tenants are refused: the node is set aside, and balancers had their time."""
        since_s = self._aside_since_s
        return self.refusing or (since_s is not None and now_s >= since_s + self._settle_s)

    def begin(self, now_s: float) -> None:
        """Start the farewell; does nothing if it has begun."""
        if self.phase is Phase.SERVING:
            self._enter(Phase.SETTLING, now_s + self._settle_s)

    def advance(self, now_s: float, inflight: int, *, hurried: bool = False) -> Sequence[Step]:
        """Move as far as time and `inflight` requests allow; return what to do, in order."""
        steps: list[Step] = []
        while (step := self._next(now_s, inflight, hurried=hurried)) is not None:
            if step is Phase.CLOSING:
                steps.append(Step.CLOSE_LISTENERS)
                self._enter(step, now_s + self._grace_s)
            elif step is Phase.CUTTING:
                steps.append(Step.CUT_REQUESTS)
                self._enter(step, now_s + CUT_S)
            else:
                self._enter(step, None)
        return steps

    def wait_s(self, now_s: float) -> float | None:
        """Return how long nothing happens by itself; None once it is over or before it began."""
        return None if self._ends_s is None else max(0.0, self._ends_s - now_s)

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
        self.refusing = phase >= Phase.CLOSING
        self._ends_s = ends_s
