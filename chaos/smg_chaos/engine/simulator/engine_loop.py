"""Engine loop: advances an engine on an asyncio event loop with a single timer."""

import asyncio
from collections.abc import Callable

from smg_chaos.engine.simulator.engine import Engine
from smg_node.core.ports import Clock

# Loops with millisecond timers fire up to that much early; what they fire for is done then.
_EARLY_S = 0.001


class Clockwork:
    """Advances one engine whenever something is due, and then calls `after`."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        after: Callable[[], None],
    ) -> None:
        self.engine = engine
        self._clock = clock
        self._loop = loop
        self._after = after
        self._timer: asyncio.TimerHandle | None = None
        self._armed_s = 0.0

    def now_s(self) -> float:
        """Return the engine's time now."""
        return self._clock.monotonic_s()

    def settle(self) -> None:
        """Advance the engine to now and set the timer for the rest; call it after every change."""
        self.engine.advance(self._clock.monotonic_s())
        self.arm()

    def arm(self) -> None:
        """Set the timer for what is due next."""
        due_s = self.engine.due_s() if self.engine.died is None else None
        timer = self._timer
        if timer is not None:
            if due_s == self._armed_s:
                return
            timer.cancel()
            self._timer = None
        if due_s is not None:
            self._armed_s = due_s
            delay_s = due_s - self._clock.monotonic_s()
            self._timer = self._loop.call_later(max(0.0, delay_s), self._fire)

    def _fire(self) -> None:
        self._timer = None
        now_s = self._clock.monotonic_s()
        if self._armed_s - _EARLY_S <= now_s < self._armed_s:
            now_s = self._armed_s
        self.engine.advance(now_s)
        self._after()
        self.arm()

    def stop(self) -> None:
        """Cancel the timer for good."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
