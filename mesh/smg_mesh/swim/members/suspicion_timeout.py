"""Suspicion timeout (Lifeguard): how long a silent member is doubted before it counts as dead.

A timeout that starts long and shrinks with every independent confirmation:

    base       = suspicion_mult * max(1, log10(n)) * probe_interval
    limit      = 6 * base
    timeout(c) = max(base, limit - (limit - base) * ln(c + 1) / ln(k + 1))

With few witnesses we are probably the slow one, so we wait; with k witnesses we are sure. Best of all
witnesses is the suspect's own host: where it refuses connections, no process listens any more.
From "Lifeguard: Local Health Awareness for More Accurate Failure Detection" (2018).
"""

from dataclasses import dataclass, field
from math import log, log10
from typing import Final

LIMIT_FACTOR: Final = 6
HASTE: Final = 2
"""A host that refuses connections knows better than any witness; a restart may still be under way."""
REMINDERS: Final = 3
"""At a quarter, a half and three quarters of the time."""


def base_ms(suspicion_mult: int, members: int, interval_ms: int) -> int:
    """Return the shortest suspicion in a cluster of `members`."""
    return round(suspicion_mult * max(1.0, log10(max(1, members))) * interval_ms)


def confirmations_wanted(suspicion_mult: int, members: int) -> int:
    """Return k: how many others must agree for the shortest timeout; 0 if there are too few others."""
    wanted = max(0, suspicion_mult - 2)
    return wanted if members - 2 >= wanted else 0


def timeout_ms(shortest_ms: int, wanted: int, confirmations: int) -> int:
    """Return how long a doubt with so many confirmations lasts."""
    if wanted == 0:
        return shortest_ms
    limit_ms = LIMIT_FACTOR * shortest_ms
    shrunk = (limit_ms - shortest_ms) * log(confirmations + 1) / log(wanted + 1)
    return max(shortest_ms, round(limit_ms - shrunk))


@dataclass(slots=True, eq=False)
class LastChance:
    """Last moment before a death: a few direct pings, any answer to which saves the member."""

    nonce: int
    started_ms: int
    pings: int = 1


@dataclass(slots=True, eq=False)
class Suspicion:
    """A doubt that runs."""

    order: tuple[int, int, int]
    """The state it is about; another state ends it."""
    started_ms: int
    base_ms: int
    wanted: int
    accusers: dict[str, None] = field(default_factory=dict)
    """All that were counted; the first of them is no confirmation."""
    confirmations: int = 0
    reminders: int = 0
    token: int = 0
    due_ms: int = 0
    """When the timer of `token` is due."""
    not_before_ms: int = 0
    """After a stall nothing expires before our eyes have adjusted."""
    hastened: bool = False
    """The suspect's host said that no process listens there: half the shortest time, no witnesses."""
    chance: LastChance | None = None
    heard: int = 0
    """How often it was begun anew because the suspect had been heard meanwhile."""

    @property
    def expires_ms(self) -> int:
        """When the last chance comes."""
        return max(self.started_ms + self._span_ms, self.not_before_ms)

    @property
    def _span_ms(self) -> int:
        if self.hastened:
            return self.base_ms // HASTE
        return timeout_ms(self.base_ms, self.wanted, self.confirmations)

    @property
    def next_reminder_ms(self) -> int | None:
        """When the suspect is to be reminded of the doubt, or None when that was done often enough."""
        if self.reminders >= REMINDERS:
            return None
        return self.started_ms + self._span_ms * (self.reminders + 1) // (REMINDERS + 1)

    def open_to(self, accuser: str) -> bool:
        """Whether this accuser's word would count: a new one, and there are not enough yet."""
        return self.confirmations < self.wanted and accuser not in self.accusers

    def confirm(self, accuser: str) -> bool:
        """Count another accuser; False if its word does not count."""
        if not self.open_to(accuser):
            return False
        self.accusers[accuser] = None
        self.confirmations += 1
        return True

    def spare(self, *, now_ms: int) -> None:
        """Begin anew without confirmations; an accuser counted once is not counted again."""
        self.confirmations = 0
        self.hastened = False
        self.restart(now_ms=now_ms)

    def restart(self, *, now_ms: int) -> None:
        """Begin anew; what was confirmed stays so."""
        self.started_ms = now_ms
        self.reminders = 0
        self.chance = None
