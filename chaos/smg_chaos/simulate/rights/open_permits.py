"""Open permits: concurrency of each limit, counted where answers begin and end.

An answer is open from when it was admitted until it ends, or its process does. Of a strict limit
never more are open than the largest amount in force since the oldest of them began, and a few
seconds before: what was lent under it goes on for so long. Of other limits those do not count that
were admitted before the owner took back what their node had: because it seemed dead, or was silent
for long.

What nodes say they have room for is added up, too: it never exceeds the largest amount there was.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from smg_chaos.simulate.base.virtual_clock import SECOND
from smg_chaos.simulate.hosts.ports import HasAgenda, PromiseReport
from smg_chaos.simulate.rights.definitions import Definitions
from smg_chaos.simulate.rights.escrow import RightsCore
from smg_mesh.escrow.book_rows import Held

LINGERS_US: Final = 6 * SECOND
"""A borrower goes on for 5 s with what it cannot renew."""


@dataclass(slots=True)
class _Places:
    """What is open of one limit."""

    open: dict[int, tuple[str, int]] = field(default_factory=dict)
    """(name, since when) by number, the oldest first."""
    since_us: int = 0
    seconds: dict[int, int] = field(default_factory=dict)
    """Places times microseconds that they were taken, by the second of the world."""
    broken: bool = False

    def advance(self, now_us: int) -> None:
        """Count what was open until now."""
        while self.since_us < now_us:
            second = self.since_us // SECOND
            until_us = min(now_us, (second + 1) * SECOND)
            taken_us = len(self.open) * (until_us - self.since_us)
            self.seconds[second] = self.seconds.get(second, 0) + taken_us
            self.since_us = until_us


class PermitWorld(HasAgenda, PromiseReport, Protocol):
    """The world of which it is counted what is open at a time."""


class RoomReport(Protocol):
    """The rights of a node, as far as they say what it has room for."""

    core: RightsCore

    def window_ms(self, key: str) -> int:
        """Return how long the windows of a key are."""
        ...


class Openings:
    """All open answers of one world."""

    def __init__(self, world: PermitWorld, definitions: Definitions) -> None:
        self._world = world
        self._definitions = definitions
        self._places: dict[str, _Places] = {}
        self._taken_us: dict[str, int] = {}
        self._numbered = 0

    def opened(self, key: str, name: str) -> int:
        """Count an answer that begins; return its number."""
        places = self._at(key)
        places.advance(self._world.agenda.now_us)
        self._numbered += 1
        places.open[self._numbered] = (name, self._world.agenda.now_us)
        self._look(key, places)
        return self._numbered

    def closed(self, key: str, number: int) -> None:
        """Count one that ends, also with its process."""
        places = self._at(key)
        places.advance(self._world.agenda.now_us)
        del places.open[number]

    def taken_back(self, name: str) -> None:
        """Note that an owner lends what that node may still have to others."""
        self._taken_us[name] = self._world.agenda.now_us

    def used(self, from_us: int, until_us: int) -> list[float]:
        """Return how much of each limit was open on the average, in every second between these moments."""
        used = []
        for key, places in self._places.items():
            places.advance(until_us)
            amount = self._definitions.newest(key).amount
            seconds = range(-(-from_us // SECOND), until_us // SECOND)
            used += [places.seconds.get(second, 0) / SECOND / amount for second in seconds]
        return used

    def look(self, tellers: Iterable[RoomReport]) -> None:
        """Add up what living nodes say they have room for."""
        room: dict[str, int] = {}
        said: dict[str, list[str]] = {}
        for teller in tellers:
            for row in teller.core.rows():
                if isinstance(row, Held) and not teller.window_ms(row.key):
                    room[row.key] = room.get(row.key, 0) + row.standing
                    said.setdefault(row.key, []).append(f"{row.name} {row.standing}")
        now_us = self._world.agenda.now_us
        for key, total in room.items():
            # What was lent under a larger amount is not back as long as its lender is gone.
            limits = self._definitions.in_force(key, 0, now_us + 1)
            strict = all(limit.mode == "strict" for limit in limits)
            most = max(limit.amount for limit in limits)
            if strict and total > most and not self._at(key).broken:
                self._at(key).broken = True
                rows = ", ".join(said[key])
                self._world.broken(f"there is room for {total} of {most} of {key}: {rows}")

    def _at(self, key: str) -> _Places:
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = _Places(since_us=self._world.agenda.now_us)
        return places

    def _look(self, key: str, places: _Places) -> None:
        now_us = self._world.agenda.now_us
        oldest_us = min(since_us for _, since_us in places.open.values())
        limits = self._definitions.in_force(key, oldest_us - LINGERS_US, now_us + 1)
        strict = all(limit.mode == "strict" for limit in limits)
        counted = sum(
            strict or since_us > self._taken_us.get(name, -LINGERS_US) + LINGERS_US
            for name, since_us in places.open.values()
        )
        most = max(limit.amount for limit in limits)
        if counted > most and not places.broken:
            places.broken = True
            names = sorted(name for name, _ in places.open.values())
            by_name = ", ".join(f"{name} {names.count(name)}" for name in dict.fromkeys(names))
            self._world.broken(f"{counted} of {most} of {key} are open: {by_name}")
