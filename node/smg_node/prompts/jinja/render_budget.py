"""Render budget: meter of work, memory and time that one render may still spend.

Work is one number. Every loop turn, macro call and operation that can make something large pays for
it *before or as* it is made, in units of about one byte; so the sum bounds both the memory that can
be alive and, roughly, the time. The clock is only looked at every few thousand units, which keeps
the common case at one subtraction and one comparison.
"""

from collections.abc import Callable, Container
from typing import Literal, NoReturn, TypeAlias

StopReason: TypeAlias = Literal["work", "time", "output", "depth"]

# How much is spent between two looks at the clock: some 50 us of looping, or one larger string.
_LOOK_EVERY = 4096
REST_EVERY = 1 << 16
"""How much is spent between two rests: some 0.8 ms of looping, or a larger string."""
# A render may make this many times its largest output in intermediate values. An honest template
# copies a text some five times on its way into the prompt.
_WORK_PER_OUTPUT = 16
# Even the smallest output may take a long conversation to read.
_WORK_MIN = 1 << 24
# Deeper than any JSON schema a recursive macro has to follow (bodies nest 128 deep at most), and
# well inside the interpreter's own limit of 1000 frames at seven frames a call.
DEPTH_MAX = 100


class LimitError(Exception):
    """A template asked for more than a render may have."""

    def __init__(self, reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.reason: StopReason = reason


class Meter:
    """The allowance of one render; belongs to one thread."""

    __slots__ = (
        "_deadline_s",
        "_monotonic_s",
        "_rest",
        "_rest_at",
        "depth",
        "given",
        "left",
        "look_at",
        "value_max",
    )

    def __init__(
        self,
        *,
        output_max: int,
        render_max_s: float,
        monotonic_s: Callable[[], float],
        given: Container[int] = (),
        rest: Callable[[], None] | None = None,
    ) -> None:
        """`given` are the `id`s of values that came as JSON with the request, and outlive the render.

        `rest` is called now and then: a thread lets others go on in it.
        """
        self.given = given
        self.value_max = output_max
        self.left = max(_WORK_MIN, output_max * _WORK_PER_OUTPUT)
        self.look_at = self.left - _LOOK_EVERY
        self.depth = 0
        self._rest = rest
        self._rest_at = self.left - REST_EVERY
        self._monotonic_s = monotonic_s
        self._deadline_s = monotonic_s() + render_max_s

    def spend(self, amount: int) -> None:
        """Pay for `amount` units; raises `LimitError` when they are not there or time is up."""
        self.left -= amount
        if self.left < self.look_at:
            self.look(amount)

    def look(self, amount: int) -> None:
        """Check every limit now; `amount` is the size of what the present operation makes."""
        if amount > self.value_max:
            self.refuse_size()
        if self.left < 0:
            raise LimitError("work", "it does more work than a chat template may")
        if self._monotonic_s() > self._deadline_s:
            raise LimitError("time", "it takes longer than a chat template may")
        self.look_at = self.left - _LOOK_EVERY
        if self._rest is not None and self.left < self._rest_at:
            self._rest_at = self.left - REST_EVERY
            self._rest()

    def refuse_size(self) -> NoReturn:
        """Refuse a value that would be longer than the longest prompt."""
        raise LimitError("output", f"it makes a text of more than {self.value_max} characters")

    def allow(self, amount: int) -> None:
        """Pay for a value of `amount` units that is about to be made."""
        if amount > self.value_max:
            self.refuse_size()
        self.spend(amount)
