"""Node footing: by how much one life of a node divides what stands, and since when.

this life's boot          nothing stands in windows (slices) that began before: a life before may have spent it
the lives before          nothing stands in what they lived through by their clocks, and nothing as long as the
                          disk does not have where the clock of this life is
a divisor after none      counts from the next slice on, of the first window a few units less: an owner by the
                          roster before rounds in another way, and may have minted that window ahead; before a
                          roster that this life has begun there was none, and all of it counts at once. Of a name
                          that joined others, it counts from the next window on, since they may have released what
                          they had of this one
what was released         never stands again, for this life and those to come
a clock that jumped back  in windows that were over by the clock of some life, no more stands than by the version of
                          the limit by which the least does: which one it was then, is not known
a divisor after another   a right that grows counts from the second window on, for the same reason; whatever
                          came in between
no majority in sight      for as long as a lease lasts: this node may borrow
"""

from typing import Final

from smg_mesh.escrow.limit_model import LEASE_MS, Limit, Roster
from smg_mesh.escrow.spending.lived_time import LivedTime
from smg_mesh.escrow.spending.released_slices import ReleasedSlices
from smg_mesh.escrow.spending.standing_rights import borrowed_right

_BOOT_MARGIN_MS: Final = 250
"""The clock of the life before may have been a little ahead of this one's."""
_AHEAD_MS: Final = 1_100
"""So long before it begins a window is minted at most, with clocks a little apart."""
NOTHING: Final = -1
"""There is no right at all yet, which is not the same as a right of 0."""


class Footing:
    """Footing of one life of a node."""

    def __init__(
        self,
        *,
        now_ms: int,
        wall_ms: int,
        lived: LivedTime | None = None,
        released: ReleasedSlices | None = None,
    ) -> None:
        self._lived = lived
        self.released = released or ReleasedSlices(None, memory_ms=lambda: 0)
        self.users = 1
        """So many names share what an owner mints."""
        self.majority = True
        self.borrowing = False
        self.booted_ms: Final = wall_ms
        self._first_ms = wall_ms + _BOOT_MARGIN_MS
        self._roster: Roster | None = None
        self._divisor = 0
        self._granted_ms = wall_ms
        """When it began to divide by anything, after nothing."""
        self._begun = False
        """It did by a roster that this life has begun with others."""
        self._past: list[tuple[int, int]] = []
        """Divisors of before and until when they counted, the largest first: a smaller one that ended earlier says
        nothing."""
        self._cut_ms = now_ms

    @property
    def founded(self) -> bool:
        """Whether it is known which names vote: before that a limit has no
        owner, and will have one soon.
        """
        return self._roster is not None

    @property
    def has_part(self) -> bool:
        """Whether it has a part of what stands."""
        return self._divisor > 0

    def restarted_after(self, moment_ms: int) -> bool:
        """Return whether this life began after that moment, and one before it may have been there since."""
        if self.booted_ms <= moment_ms:
            return False
        return self._lived is None or self._lived.lived_beyond(moment_ms)

    @property
    def is_ready(self) -> bool:
        """Whether it has a part of what stands, and the disk all that has to be on it before."""
        return self.is_known and self.has_part and self.released.has_joined

    @property
    def is_known(self) -> bool:
        """Whether the disk has where the clock of this life is."""
        return self._lived is None or self._lived.known

    def divide(
        self, roster: Roster | None, divisor: int, *, wall_ms: int, founder: bool = False
    ) -> None:
        """Divide by that from now on, by these rules; 0: nothing stands. `founder`: this life has begun the roster."""
        self._roster = roster
        self.users = len(roster.names) if roster is not None else 1
        if divisor == self._divisor:
            return
        if self._divisor:
            self._past = [one for one in self._past if one[0] > self._divisor]
            self._past.append((self._divisor, wall_ms))
        else:
            self._granted_ms = wall_ms
            self._begun = founder and roster is not None and roster.version == 1
        self._divisor = divisor

    def latest_ms(self, wall_ms: int) -> int:
        """Return the furthest moment that the clock here has shown, where it is back at that one."""
        return wall_ms if self._lived is None else self._lived.latest_ms(wall_ms)

    def clocks(self, *, now_ms: int, wall_ms: int) -> None:
        """Look at both clocks, before anything is said to stand."""
        if self._lived is not None:
            self._lived.see(now_ms=now_ms, wall_ms=wall_ms)

    def see(self, *, majority: bool, now_ms: int) -> None:
        """Learn whether a majority is in sight."""
        if majority != self.majority:
            self.majority = majority
            self._cut_ms = now_ms
        self.borrowing = not majority and now_ms - self._cut_ms >= LEASE_MS

    def since_ms(self, turn_ms: int) -> int:
        """Return the moment around that one from which on something stands: nothing does that began before."""
        # Before a roster that this life has begun nobody had a part, nor minted any.
        first_ms = self._first_ms if self._begun else max(self._first_ms, self._granted_ms)
        return first_ms if self._lived is None else max(first_ms, self._lived.until_ms(turn_ms))

    def right(self, limit: Limit, *, began_ms: int, turn_ms: int) -> int:
        """Return what stands in a window that began then, in the slice that began at `turn_ms`; or NOTHING."""
        if not self._stands(turn_ms):
            return NOTHING
        ahead_ms = began_ms - max(limit.window_ms, _AHEAD_MS)
        right = limit.standing_right(self._divisor, began_ms=began_ms)
        if limit.has_past and self._was_over(limit, began_ms):
            right = min(right, limit.least.standing_right(self._divisor))
        for divisor, until_ms in self._past:
            if until_ms > ahead_ms:
                right = min(right, limit.standing_right(divisor, began_ms=began_ms))
        if self._begun or self._granted_ms <= ahead_ms:
            return right
        return max(0, right - self.users)

    def loan(self, limit: Limit, *, began_ms: int, turn_ms: int) -> int:
        """Return what this node may borrow now of a window that began then."""
        if not self.borrowing or not self._stands(turn_ms):
            return 0
        if limit.has_past and self._was_over(limit, began_ms):
            return 0
        return borrowed_right(limit, self._divisor)

    def _was_over(self, limit: Limit, began_ms: int) -> bool:
        return self._lived is not None and self._lived.has_passed(began_ms + limit.window_ms)

    def _stands(self, turn_ms: int) -> bool:
        return self.is_known and self._divisor > 0 and turn_ms >= self.since_ms(turn_ms)
