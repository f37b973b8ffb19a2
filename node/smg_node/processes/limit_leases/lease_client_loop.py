"""Lease client loop: the rights of a data process, asked of its control process over a link.

    rights = LeasedRights(limits, clock=…)
    rights.link(tell)          # what sends to the control process; all that was held before is void
    rights.hear(content)       # what comes from there
    rights.cut()               # it is gone

What is charged is a number of this process. Questions are asked when a request waits, and every few
milliseconds where a limit is used fast; while none is used there is no wake-up. Without a control
process what is here may be used until its window ends, and requests that find too little wait as
they do for a limit that has no owner.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from smg_mesh.shared import RightsQueue
from smg_node.core.ports import Clock
from smg_node.processes.limit_leases.lease_client import LeaseClient, Limit, Waits
from smg_node.processes.limit_leases.lease_messages import LeaseReport, pack, read_grants
from smg_node.processes.limit_leases.leased_share import LeasedShare

Tell = Callable[[bytes], None]
ANSWER_S: Final = 0.5
"""Nobody is refused because a busy machine lets his control process answer late: it knows whether there is anything."""
_ROUNDING_S: Final = 0.000_5
"""Timers are a little late, so that no rounding wakes us just before something is due."""


class Defined(Protocol):
    """A limit as it is defined now."""

    @property
    def amount(self) -> int:
        """Its amount."""
        ...

    @property
    def window_ms(self) -> int:
        """Length of its windows, 0 for what is open at a time."""
        ...


class LimitsHere(Protocol):
    """Port to the definitions, as this process knows them."""

    def get(self, key: str) -> Defined | None:
        """Return the limit of that key; None if there is none."""
        ...


class LeasedRights:
    """`admission.ports.Rights` of one data process; used in the loop's thread only."""

    def __init__(self, limits: LimitsHere, *, clock: Clock) -> None:
        self._limits: Final = limits
        self._clock: Final = clock
        self._waiting: Final = RightsQueue()
        self._borrower: Final = LeaseClient(lambda key: Waits(*self._waiting.costs(key)))
        self._tell: Tell | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms: int | None = None

    # ── What spends ──────────────────────────────────────────────────────────

    def share(self, key: str) -> LeasedShare | None:
        """Return what may be charged of a limit now; None if there is no such limit."""
        limit = self._limits.get(key)
        if limit is None:
            return None
        now_ms = self._now_ms()
        share = self._borrower.share(
            key,
            Limit(limit.amount, limit.window_ms),
            now_ms=now_ms,
            wall_ms=self._clock.now_ms(),
        )
        self._at(now_ms)
        return share

    async def refilled(self, share: Any, cost: int, within_s: float) -> bool:
        """Ask for rights at once, and return whether there was room for `cost` in time; charges nothing.

        A caller stops waiting when the answer is that there is nothing. Without an answer it waits
        for `within_s`, and for half a second at least.
        """
        now_ms = self._now_ms()
        self._borrower.want(share.key, now_ms)
        # The look comes with the next turn of the loop: by then this one is among those who wait.
        self._at(now_ms)
        return await self._waiting.wait(share, cost, max(within_s, ANSWER_S))

    # ── The link ─────────────────────────────────────────────────────────────

    def link(self, tell: Tell) -> None:
        """Ask this control process from now on, after a report of what is open here."""
        self._tell = tell
        now_ms = self._now_ms()
        tell(pack(LeaseReport((), self._borrower.begin_anew(now_ms))))
        self._at(now_ms)

    def cut(self) -> None:
        """Note that no control process answers any more."""
        self._tell = None
        self._borrower.cut()

    def hear(self, content: bytes) -> None:
        """Take a message of the control process; ValueError for one it cannot have sent."""
        now_ms = self._now_ms()
        heard = self._borrower.hear(
            read_grants(content), now_ms=now_ms, wall_ms=self._clock.now_ms()
        )
        for key in heard:
            share = self._borrower.peek(key)
            if share is None:
                continue
            self._waiting.look(share)
            if share.pool == 0:
                self._waiting.give_up(key)
        self._at(now_ms)

    def close(self) -> None:
        """Ask for nothing any more."""
        self.cut()
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due_ms = None, None

    # ── Looking ──────────────────────────────────────────────────────────────

    def _look(self) -> None:
        self._timer, self._due_ms = None, None
        asks = self._borrower.look(self._now_ms(), self._clock.now_ms())
        if asks and self._tell is not None:
            self._tell(pack(LeaseReport(tuple(asks))))
        due_ms = self._borrower.due_ms()
        if due_ms is not None:
            self._at(due_ms)

    def _at(self, due_ms: int) -> None:
        """Look at that time, or sooner."""
        if self._due_ms is not None:
            if self._due_ms <= due_ms:
                return
            assert self._timer is not None
            self._timer.cancel()
        self._due_ms = due_ms
        delay_s = due_ms / 1000 - self._clock.monotonic_s()
        delay_s = max(0.0, delay_s + _ROUNDING_S) if delay_s > 0 else 0.0
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._look)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * 1000)
