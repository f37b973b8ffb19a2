"""Loop lag: how late the event loop runs its timers, because a slow callback delays every stream.

A timer is set ten times a second; how long after its time it fires is the lag. Over 20 ms is logged,
at most once a second; over 100 ms is counted as a stall as well.

While there is nothing to delay, the timer is set every five seconds: a wake-up of an idle machine takes 0.1
to 0.25 ms of a core, so that ten of them would be most of what an idle node costs.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from smg_node.core.ports import Clock
from smg_node.telemetry.metrics.meters import Meters

_INTERVAL_S: Final = 0.1
_IDLE_INTERVAL_S: Final = 5.0
_LOGGED_S: Final = 0.02
_STALL_S: Final = 0.1
_LOG_INTERVAL_S: Final = 1.0

_log = logging.getLogger("smg_node.telemetry")


class LagJudge:
    """Decides whether an observed lag is logged or counted; independent of any loop."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._logged_s = float("-inf")
        self._worst_s = 0.0

    def observe(self, lag_s: float, now_s: float) -> None:
        """Take one lag, seen at `now_s` on the monotonic clock."""
        self._meters.loop_lag(lag_s)
        if lag_s > _STALL_S:
            self._meters.loop_stall()
        if lag_s <= _LOGGED_S:
            return
        self._worst_s = max(self._worst_s, lag_s)
        if now_s - self._logged_s >= _LOG_INTERVAL_S:
            _log.warning("the event loop was late by %.0f ms", self._worst_s * 1000)
            self._logged_s = now_s
            self._worst_s = 0.0


class LoopLag:
    """Watches the running loop, closely while `busy()`: while there may be streams to delay."""

    def __init__(self, meters: Meters, clock: Clock, *, busy: Callable[[], bool]) -> None:
        self._judge = LagJudge(meters)
        self._clock = clock
        self._busy = busy

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            interval_s = _INTERVAL_S if self._busy() else _IDLE_INTERVAL_S
            before_s = self._clock.monotonic_s()
            await asyncio.sleep(interval_s)
            now_s = self._clock.monotonic_s()
            self._judge.observe(max(0.0, now_s - before_s - interval_s), now_s)
