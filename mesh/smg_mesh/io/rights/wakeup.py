"""Wake-up timer: one call to come, at the soonest time that was asked for, and none without any.

What is called is called in the loop, never from within what asked for it. If it fails (a mistake of
ours), that is counted and logged, and it is called again a second later.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from smg_mesh.io.counters import Counters

RETRY_MS: Final = 1_000
_FAULTS_LOGGED_MAX: Final = 20

_log: Final = logging.getLogger("smg_mesh.shared")


class WakeupTimer:
    """Calls `beat` when it is due; times are milliseconds of `monotonic_s`."""

    def __init__(
        self, beat: Callable[[], None], *, monotonic_s: Callable[[], float], counters: Counters
    ) -> None:
        self._beat: Final = beat
        self._monotonic_s: Final = monotonic_s
        self._counters: Final = counters
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._due_ms: int | None = None
        self._faults = 0

    def start(self) -> None:
        """Begin to call; what was asked for before is not forgotten."""
        self._loop = asyncio.get_running_loop()
        due_ms, self._due_ms = self._due_ms, None
        if due_ms is not None:
            self.at(due_ms)

    def stop(self) -> None:
        """Call no more."""
        self._loop = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def at(self, due_ms: int) -> None:
        """Call at that time, or sooner."""
        if self._due_ms is not None and self._due_ms <= due_ms:
            return
        self._due_ms = due_ms
        if self._loop is None:
            return
        if self._handle is not None:
            self._handle.cancel()
        # Half a millisecond later than due, so that no rounding wakes us just before it.
        delay_s = max(0.0, (due_ms + 0.5) / 1000 - self._monotonic_s())
        self._handle = self._loop.call_later(delay_s, self._beat_now)

    def _beat_now(self) -> None:
        self._handle = None
        self._due_ms = None
        if not self.guard(self._beat):
            self.at(int(self._monotonic_s() * 1000) + RETRY_MS)

    def guard(self, act: Callable[[], object]) -> bool:
        """Do something of shared state; return whether it went well."""
        try:
            act()
        except Exception:
            # A door: a mistake about one piece of state must not take membership or the gateway with it.
            self._counters.add("state_fault")
            self._faults += 1
            if self._faults <= _FAULTS_LOGGED_MAX:
                _log.exception("shared state failed on one input, which is dropped")
            return False
        return True
