"""Quorum writes: totals that an owner has a majority of voters store,
and how much of each it may use.

The first majority of voters that answers for a (key, window) under a term tells its `base`: no
owner with a smaller term can have used more than that, and none will. From then on every total that
a majority has stored under this term is this owner's, from the base up. Votes count while they are
fresh: a voter that restarted since is not counted for what its former life had stored, because a
vote is too old by the time its new life votes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from smg_mesh.escrow.election.minted_records import LEVEL_MARK, row_bytes, window_ms_of
from smg_mesh.escrow.limit_model import GUARD_MS, LEASE_MS
from smg_mesh.escrow.messages.messages import ROWS_MAX, LeaseVote, Minted, Stored

FRESH_MS: Final = LEASE_MS - GUARD_MS
AGAIN_MS: Final = 100
"""A write that no majority has answered is sent again after this."""
SELDOM_MS: Final = 500
SELDOM_AFTER: Final = 10
AHEAD_MS: Final = 900
"""Voters store nothing that begins more than a second ahead; clocks differ a little."""
SOON_MS: Final = 150
KEPT_MIN_MS: Final = 10_000
BYTES_MAX: Final = 850
"""Of rows in one ask; so that it fits into a datagram, and the vote as well."""
WRITES_MAX: Final = 20_000


@dataclass(slots=True)
class Write:
    """Write of one (key, window) of an owner, under its term."""

    total: int
    touched_ms: int
    urgent: bool = False
    base: int = -1
    made: int = 0
    stored: int = -1
    asked_ms: int = -1
    tries: int = 0
    votes: dict[str, tuple[int, Stored]] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether a majority has stored what is wished."""
        return self.base >= 0 and self.stored >= self.total

    def due_ms(self) -> int:
        """Return when to send it again."""
        return self.asked_ms + (SELDOM_MS if self.tries > SELDOM_AFTER else AGAIN_MS)


class Writes:
    """All writes of one owner under one term."""

    def __init__(self) -> None:
        self._writes: dict[tuple[str, int], Write] = {}
        self._open: dict[tuple[str, int], Write] = {}
        self._levels: dict[str, tuple[int, int]] = {}
        self._tidied_ms = 0

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._writes)

    def get(self, key: str, window: int) -> Write | None:
        """Return what is known of it, if it was wished."""
        return self._writes.get((key, window))

    def level(self, key: str) -> tuple[int, int] | None:
        """Return (number, total) of the last write of a level, once a majority has said it."""
        return self._levels.get(key)

    def wish(self, key: str, window: int, total: int, *, urgent: bool, now_ms: int) -> None:
        """Let so much be stored; less than before changes nothing."""
        place = (key, window)
        write = self._writes.get(place)
        if write is None:
            if len(self._writes) >= WRITES_MAX:
                return
            write = self._writes[place] = Write(total, now_ms)
            self._open[place] = write
        elif total > write.total:
            write.total, write.asked_ms, write.tries = total, -1, 0
            self._open[place] = write
        write.touched_ms = now_ms
        write.urgent = write.urgent or urgent

    def due(self, *, now_ms: int, wall_ms: int) -> bool:
        """Return whether something must be sent at once, rather than with the next renewal."""
        return any(
            (write.urgent or _begins_ms(place, wall_ms) <= SOON_MS)
            if write.asked_ms < 0
            else now_ms >= write.due_ms()
            for place, write in self._sendable(wall_ms)
        )

    def due_ms(self, *, now_ms: int, wall_ms: int) -> int:
        """Return when `due` will say so, if nothing is wished or voted before."""
        due_ms = now_ms + FRESH_MS
        for place, write in self._open.items():
            begins_ms = _begins_ms(place, wall_ms)
            if write.asked_ms >= 0:
                one_ms = write.due_ms()
            elif write.urgent or begins_ms <= SOON_MS:
                one_ms = now_ms
            else:
                one_ms = now_ms + begins_ms - SOON_MS
            due_ms = min(due_ms, max(one_ms, now_ms + begins_ms - AHEAD_MS))
        return due_ms

    def take(self, *, now_ms: int, wall_ms: int) -> tuple[Minted, ...]:
        """Return the rows to be sent now, as many as fit into one ask."""
        rows: list[Minted] = []
        size = 0
        for place, write in self._sendable(wall_ms):
            if write.asked_ms >= 0 and now_ms < write.due_ms():
                continue
            size += row_bytes(place[0])
            if rows and (size > BYTES_MAX or len(rows) >= ROWS_MAX):
                break
            write.asked_ms, write.tries = now_ms, write.tries + 1
            rows.append(Minted(*place, write.total))
        return tuple(rows)

    def voted(self, vote: LeaseVote, *, majority: int, now_ms: int) -> None:
        """Count what a voter has stored."""
        for row in vote.stored:
            place = (row.key, row.window)
            read = LEVEL_MARK in row.key and (row.key, 0) in self._open
            write = self._writes.get((row.key, 0) if read else place)
            if write is None:
                continue
            before = write.votes.get(vote.voter)
            if before is None or before[0] <= vote.asked_ms:
                write.votes[vote.voter] = vote.asked_ms, row
            fresh = [row for at, row in write.votes.values() if now_ms - at < FRESH_MS]
            if len(fresh) >= majority:
                if read:
                    self._read(row.key, write, fresh)
                else:
                    self._count(place, write, fresh, majority)

    def begin_anew(self) -> None:
        """Count no vote of before: the roster is another one."""
        for write in self._writes.values():
            write.votes.clear()

    def tidy(self, *, now_ms: int, wall_ms: int) -> None:
        """Forget what is over; now and then."""
        if now_ms - self._tidied_ms < 1_000:
            return
        self._tidied_ms = now_ms
        for place, write in list(self._writes.items()):
            length_ms = window_ms_of(place[0])
            kept_ms = max(KEPT_MIN_MS, 3 * length_ms)
            if now_ms - write.touched_ms > kept_ms:
                del self._writes[place]
                self._open.pop(place, None)
                self._levels.pop(place[0], None)
            elif length_ms and (place[1] + 2) * length_ms < wall_ms:
                self._open.pop(place, None)

    def _sendable(self, wall_ms: int) -> Iterator[tuple[tuple[str, int], Write]]:
        for place, write in self._open.items():
            if _begins_ms(place, wall_ms) <= AHEAD_MS:
                yield place, write

    def _read(self, key: str, write: Write, fresh: list[Stored]) -> None:
        last = max(fresh, key=lambda row: row.window)
        write.base = write.stored = 0
        self._levels[key] = last.window, last.total
        self._open.pop((key, 0), None)

    def _count(
        self, place: tuple[str, int], write: Write, fresh: list[Stored], majority: int
    ) -> None:
        if write.base < 0:
            write.base = max(row.base for row in fresh)
        totals = sorted((row.total for row in fresh), reverse=True)
        write.stored = max(write.stored, min(totals[majority - 1], write.total))
        write.made = max(write.made, write.stored - write.base)
        if write.done:
            self._open.pop(place, None)
            if LEVEL_MARK in place[0]:
                self._levels[place[0]] = place[1], write.stored


def _begins_ms(place: tuple[str, int], wall_ms: int) -> int:
    """Return in how long a window begins; negative if it has."""
    return place[1] * window_ms_of(place[0]) - wall_ms
