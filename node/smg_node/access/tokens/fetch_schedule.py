"""Fetch schedule of one issuer's keys: when a node asks for them again, and when an unknown key is a reason to ask. Pure.

    refresh      when what is held grows old: its own age, clamped and spread, so that issuers are not asked in step
    unknown key  at once, unless somebody asked in the last 5 s; while that brings nothing new, after 10, 20, 40, 60 s
    issuer away  after 2, 4, 8, … 60 s

Whoever sends tokens with invented keys thus causes three or four requests to the issuer in a minute, whatever he sends;
the issuer's own new key is had at once. Nodes have a *place* for each issuer: the first one refreshes, the others only
stand by, and ask later by their place should nobody else have. Times are milliseconds of a clock that never goes back.
"""

from typing import Final

from smg_node.core.ports import Rng

AGE_MIN_MS: Final = 300_000
"""However briefly an issuer says that its keys may be kept."""
AGE_MAX_MS: Final = 3_600_000
AGE_UNTOLD_MS: Final = 900_000
"""Of an issuer that does not say how long its keys may be kept."""
SPREAD: Final = 0.2
FRESH_MS: Final = 5_000
"""Who just asked knows what there is: a key that is unknown then does not exist."""
GAP_MS: Final = 10_000
GAP_MAX_MS: Final = 60_000
QUIET_MS: Final = 300_000
"""After so long without unknown keys the next one is a reason to ask at once again."""
RETRY_MS: Final = 2_000
RETRY_MAX_MS: Final = 60_000
STANDBY_MS: Final = 5_000
"""Of each place while there are no keys at all."""
STANDBY_HELD_MS: Final = 60_000
"""The same where there are keys: nothing is lost meanwhile."""


class FetchSchedule:
    """What one node knows of asking one issuer. `rng` spreads refreshes."""

    def __init__(self, rng: Rng, now_ms: int) -> None:
        self._rng: Final = rng
        self._has_keys = False
        self._due_ms = now_ms
        self._asked_ms: int | None = None
        self._wanted_ms: int | None = None
        self._gap_ms = 0
        self._retry_ms = 0

    @property
    def gap_ms(self) -> int:
        """How long unknown keys wait for the next request after the last; 0 for no longer than is always waited."""
        return self._gap_ms

    def due_ms(self, place: int) -> int:
        """Return when to refresh, as a node of that place: 0 is the first."""
        standby_ms = STANDBY_HELD_MS if self._has_keys else STANDBY_MS
        return self._due_ms + place * standby_ms

    def may_ask(self, now_ms: int) -> bool:
        """Return whether an unknown key is a reason to ask now; notes that there was one."""
        if self._wanted_ms is not None and now_ms - self._wanted_ms >= QUIET_MS:
            self._gap_ms = 0
        self._wanted_ms = now_ms
        if self._asked_ms is None:
            return True
        return now_ms - self._asked_ms >= max(self._gap_ms, FRESH_MS)

    def begin(self, now_ms: int) -> None:
        """Note that somebody asks now: this node, or one that was asked to by this node."""
        self._asked_ms = now_ms

    def bring(self, now_ms: int, *, is_new: bool, for_unknown: bool) -> None:
        """Note that keys came: `is_new`, other ones than before; `for_unknown`, asked for because one was missing."""
        self._retry_ms = 0
        if is_new:
            self._gap_ms = 0
        elif for_unknown:
            self._lengthen()

    def fail(self, now_ms: int, *, for_unknown: bool) -> None:
        """Note that nothing came: it is tried again after a while that grows."""
        self._retry_ms = min(max(RETRY_MS, self._retry_ms * 2), RETRY_MAX_MS)
        self._due_ms = now_ms + self._retry_ms
        if for_unknown:
            self._lengthen()

    def hold(self, now_ms: int, *, age_ms: int, max_age_ms: int) -> None:
        """Note which keys count now, fetched by whichever node: how old they are, and how long the issuer lets them be
        kept, -1 if it does not say.
        """
        self._has_keys = True
        # A clock of another node may be ahead: nothing is younger than new.
        fetched_ms = now_ms - max(0, age_ms)
        if self._asked_ms is None or self._asked_ms < fetched_ms:
            self._asked_ms = fetched_ms
        told_ms = AGE_UNTOLD_MS if max_age_ms < 0 else max_age_ms
        clamped_ms = min(max(told_ms, AGE_MIN_MS), AGE_MAX_MS)
        factor = 1 - SPREAD + 2 * SPREAD * self._rng.random()
        self._retry_ms = 0
        self._due_ms = fetched_ms + round(clamped_ms * factor)

    def drop(self, now_ms: int) -> None:
        """Note that no keys count any more: those of another issuer of that name, or too old."""
        if self._has_keys:
            self._has_keys = False
            self._due_ms = now_ms

    def _lengthen(self) -> None:
        self._gap_ms = min(max(GAP_MS, self._gap_ms * 2), GAP_MAX_MS)
