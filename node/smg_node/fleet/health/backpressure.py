"""Backpressure: leaves a worker that says it is full alone for a while, then tries it with few
calls. Pure.

It is passed over for the time it asks for, or for 0.25 s, doubled up to 5 s as long as it answers
nothing. Then it is tried with one call, and with one more at a time for each that it answered, up
to sixteen: calls that wait for it do not all come back at once only to be refused.
"""

from typing import Final

from smg_node.core.ports import Rng

NEVER: Final = float("inf")
FIRST_S: Final = 0.25
MOST_S: Final = 5.0
ASKED_MAX_S: Final = 60.0
"""A worker that asks to be left alone for longer is asked again all the same."""
CALM_AFTER: Final = 16
"""So many answers after pressure, and it is over."""
CALM_S: Final = 30.0
"""So long after the last pause it is over in any case: those who made it full are gone."""
JITTER: Final = 0.2
_DOUBLINGS_MAX: Final = 8


def jittered(span_s: float, rng: Rng) -> float:
    """Return `span_s`, 20 % longer or shorter: nodes that saw the same do not act at the same moment."""
    return span_s * (1 - JITTER + 2 * JITTER * rng.random())


class Pressure:
    """Backpressure state of one worker. Time is monotonic seconds."""

    __slots__ = ("_good", "_pauses", "_rng", "count", "room", "until_s", "watched")

    def __init__(self, rng: Rng) -> None:
        self.count = 0
        """How often it said so."""
        self._rng = rng
        self.clear()

    def clear(self) -> None:
        """Forget it: another engine answers there."""
        self.until_s = -NEVER
        """It is left alone until then."""
        self.room = 1
        """Calls with which it is tried again at a time."""
        self.watched = False
        """Whether it said so, and has not answered often enough since: only then do `wary` and `until_s` matter."""
        self._good = 0
        self._pauses = 0

    @property
    def calm_s(self) -> float:
        """Time at which it is over if nothing more is heard of it."""
        return self.until_s + CALM_S if self.watched else -NEVER

    def wary(self, now_s: float) -> bool:
        """Whether it is being tried again, with few calls."""
        return self.watched and now_s < self.until_s + CALM_S

    def add(self, now_s: float, retry_after_s: float | None) -> bool:
        """Take in that it had no room for a call; return whether it is left alone from now on, and was not before."""
        waiting = now_s < self.until_s
        if retry_after_s is not None:
            pause_s = min(max(retry_after_s, 0.0), ASKED_MAX_S)
        elif waiting:
            # Calls that were under way together are turned away together, once.
            pause_s = 0.0
        else:
            span_s = min(FIRST_S * 2.0 ** min(self._pauses, _DOUBLINGS_MAX), MOST_S)
            pause_s = jittered(span_s, self._rng)
            self._pauses += 1
        self.count += 1
        self.until_s = max(self.until_s, now_s + pause_s)
        self.watched, self.room, self._good = True, 1, 0
        return not waiting

    def spoke(self) -> None:
        """Take in that some call there got an answer: the next pause is a short one."""
        self._pauses = 0

    def answered(self) -> None:
        """Take in that it answered a call with which it was tried again."""
        self.room += 1
        self._good += 1
        self.watched = self._good < CALM_AFTER
