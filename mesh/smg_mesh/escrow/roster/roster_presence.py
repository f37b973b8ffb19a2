"""Roster presence: which members have been there long enough to join the
roster, or gone long enough to leave.
"""

from collections.abc import Sequence
from typing import Final

from smg_mesh.escrow.limit_model import NAMES_MAX, Life, Roster
from smg_mesh.escrow.roster.roster_paxos import Change

JOIN_AFTER_MS: Final = 10_000
FORGET_AFTER_MS: Final = 86_400_000
"""The dead stay for a day: they may be alive on the other side of a cut, and what stands with them is theirs."""


class Presence:
    """Presence of the other members, as one node has seen it."""

    def __init__(self, name: str, *, now_ms: int) -> None:
        self._name = name
        self._alive_since_ms: dict[str, int] = {name: now_ms}
        self._boots: dict[str, int] = {}
        self._gone_since_ms: dict[str, int] = {}
        self._left: tuple[str, ...] = ()
        self._forgotten: list[str] = []
        self._now_ms = now_ms

    def members(self, alive: Sequence[Life], left: Sequence[str], *, now_ms: int) -> None:
        """Learn which members are alive, sorted by name, and which said goodbye."""
        names = [self._name, *(life.name for life in alive if life.name != self._name)]
        since = self._alive_since_ms
        self._alive_since_ms = {name: since.get(name, now_ms) for name in sorted(names)}
        self._boots = {life.name: life.boot for life in alive}
        self._left = tuple(name for name in sorted(left) if name not in self._alive_since_ms)
        self._forgotten = [name for name in self._forgotten if name not in self._alive_since_ms]
        self._now_ms = now_ms

    def alive(self) -> Sequence[str]:
        """Return the names of members that are alive, this node among them, sorted."""
        return list(self._alive_since_ms)

    def lives(self, me: Life) -> Sequence[Life]:
        """Return the lives of members that are alive, this node's among them, sorted by name."""
        boots = {**self._boots, me.name: me.boot}
        return [Life(name, boots[name]) for name in self._alive_since_ms]

    def forget(self, name: str) -> None:
        """Treat a name that is not alive as one that left."""
        if name not in self._alive_since_ms and name not in self._forgotten:
            self._forgotten = [*self._forgotten, name][-NAMES_MAX:]

    def tick(self, roster: Roster | None, *, now_ms: int) -> None:
        """Count how long names of the roster have been gone."""
        self._now_ms = now_ms
        names = roster.names if roster is not None else ()
        gone = [name for name in names if name not in self._alive_since_ms]
        since = self._gone_since_ms
        self._gone_since_ms = {name: since.get(name, now_ms) for name in gone}

    def due_ms(self, *, now_ms: int) -> int:
        """Return when a newcomer has been there for long enough; one exchange's time at most."""
        waits = [since_ms + JOIN_AFTER_MS for since_ms in self._alive_since_ms.values()]
        return min((due_ms for due_ms in waits if due_ms > now_ms), default=now_ms + JOIN_AFTER_MS)

    def wish(self, roster: Roster) -> Change | None:
        """Return one change that this roster needs: first a leave, then a
        join, then the parts of newcomers.
        """
        for name in roster.names:
            if name != self._name and self._is_gone(name):
                return Change("leave", name)
        for name, since_ms in self._alive_since_ms.items():
            ripe = self._now_ms - since_ms >= JOIN_AFTER_MS
            if ripe and name not in roster.names and len(roster.names) < NAMES_MAX:
                return Change("join", name)
        count = len(roster.names)
        uneven = any(divisor != count for divisor in roster.divisors)
        if uneven and all(name in self._alive_since_ms for name in roster.names):
            return Change("grow")
        return None

    def _is_gone(self, name: str) -> bool:
        if name in self._alive_since_ms:
            return False
        since_ms = self._gone_since_ms.get(name, self._now_ms)
        long = self._now_ms - since_ms >= FORGET_AFTER_MS
        return long or name in self._left or name in self._forgotten
