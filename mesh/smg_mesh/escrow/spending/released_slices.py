"""Released slices: slices of long windows that a node gave up before they came, for others to use now.

What would accrue to a node later in a window is released from the end of the window backwards: so
what is due soonest is given up last. A released slice never stands again, for no life of this node:
it is on disk before the owner hears of it. So a life may let a slice of a window stand only if

    its disk has everything that the lives before it wrote since that window began (`memory_ms`), and
    this name has been in the roster since then: where it joined later, those before it may have released
    what they divided among themselves. When that was, is on disk as well before anything stands.

Without a data dir nothing outlives a process: such windows begin to stand for a new life with the next one.

Windows above RELEASED_MAX_MS, which are budgets, are not released: what a life had released and reported dies with it,
and there it would be missing for long. So nothing of this concerns them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.escrow.spending.standing_rights import slices_of

RELEASED: Final = "!released!"
"""On disk: (this and the key, window) → how many of its slices are released, from the last one on."""
_MONTH_MS: Final = 2_678_400_000
JOINED: Final = "!joined!"
"""On disk: (this, the id of a roster, "/" and a month; month of writing) → since when this name is in it (wall clock)."""
_FOUNDED_MS: Final = 1
"""Of a name that has begun the roster."""
_MARGIN_MS: Final = 250
RELEASED_MAX_MS: Final = 120_000
_NEVER_MS: Final = 1 << 62
_AGAIN_MS: Final = 1_000
"""What is not on disk by then is written again, if it is still wanted."""
_KEPT_MAX: Final = 65_536
"""Windows, of two minutes at most; above that those are forgotten that were released first."""


class ReleasedSlices:
    """Released slices of one node.

    `memory_ms()` is the moment (wall clock) from which on the disk has all that was written; 0: always.
    """

    def __init__(
        self,
        remembered: Mapping[tuple[str, int], int] | None,
        *,
        memory_ms: Callable[[], int],
        before: "ReleasedSlices | None" = None,
    ) -> None:
        """Begin with what the disk says, and with the life before if it was in this process."""
        self._memory_ms: Callable[[], int] = memory_ms if before is None else before._memory_ms
        self._released: dict[tuple[str, int], int] = {}
        self._unwritten: dict[tuple[str, int], int] = {}
        self._planned: dict[tuple[str, int], tuple[int, int]] = {}
        """What is being written: so many slices, since when."""
        self._joined: dict[str, int] = {}
        self._joining: Minted | None = None
        """What is being written."""
        self._tried_ms = -_AGAIN_MS
        self._roster: tuple[str, int] = ("", -1)
        self._outside = self._renewed = False
        if before is not None:
            self._released |= before._released
            for place, (slices, _) in before._planned.items():
                self._released[place] = max(slices, self._released.get(place, 0))
            self._joined |= before._joined
            self._roster, self._outside = before._roster, before._outside
        for (key, window), slices in (remembered or {}).items():
            if key.startswith(RELEASED):
                self._released[key[len(RELEASED) :], window] = slices
            elif key.startswith(JOINED):
                name = key[len(JOINED) :].partition("/")[0]
                self._joined[name] = max(slices, self._joined.get(name, 0))

    def follow(self, roster: Roster | None, divisor: int, *, founder: bool, wall_ms: int) -> None:
        """Learn which roster this node goes by, and what it divides by in it; 0: it has no part in it yet.

        Whoever missed more than one change may have been out of it meanwhile.
        """
        if roster is None:
            return
        name, (known, version) = roster.id.hex(), self._roster
        other = known not in ("", name)
        missed = known == name and roster.version - version > 1
        self._outside = self._outside or other or missed or not divisor
        self._roster = (name, roster.version)
        if not divisor:
            return
        if self._outside or name not in self._joined:
            founded = founder and roster.version == 1
            since_ms = _FOUNDED_MS if founded else wall_ms + _MARGIN_MS
            self._outside = False
            self._joined.pop(name, None)
            self._join(name, since_ms, wall_ms)
        elif not self._renewed:
            self._join(name, self._joined[name], wall_ms)

    @property
    def has_joined(self) -> bool:
        """Whether it is on disk since when this name is in the roster: before that nothing of what is lent stands."""
        return self._roster[0] in self._joined

    def kept(self, key: str, window: int, window_ms: int) -> int:
        """Return how many slices of a window may stand, from its first one on; -1 as long as the disk does not have
        since when this name is in the roster.
        """
        slices = slices_of(window_ms)
        if not self.may(window_ms):
            return slices
        if not self.has_joined:
            return -1
        if window * window_ms < max(self._memory_ms(), self._joined_ms()):
            return 0
        return max(0, slices - self._released.get((key, window), 0))

    def may(self, window_ms: int) -> bool:
        """Return whether slices of such windows are released."""
        return slices_of(window_ms) > 1 and window_ms <= RELEASED_MAX_MS

    def plan(self, key: str, window: int, slices: int, *, now_ms: int) -> None:
        """Have it written that so many slices are released, from the last one on; unless it is being written."""
        place = (key, window)
        planned, since_ms = self._planned.get(place, (0, now_ms))
        if slices <= self._released.get(place, 0):
            return
        if slices > planned or now_ms - since_ms >= _AGAIN_MS:
            slices = max(slices, planned)
            self._planned[place] = (slices, now_ms)
            self._unwritten[place] = slices

    def released(self, key: str, window: int) -> int:
        """Return how many slices of a window are released, from the last one on."""
        return self._released.get((key, window), 0)

    def unwritten(self, *, now_ms: int) -> tuple[Minted, ...]:
        """Return what is to be written, once."""
        if not self._unwritten and self._joining is None:
            return ()
        places, self._unwritten = self._unwritten, {}
        rows = [Minted(RELEASED + key, window, n) for (key, window), n in places.items()]
        if self._joining is not None and now_ms - self._tried_ms >= _AGAIN_MS:
            self._tried_ms = now_ms
            rows.append(self._joining)
        return tuple(rows)

    def written(self, row: Minted) -> str:
        """Learn of a row on disk; return the key whose slices are released now, "" for any other row."""
        if row == self._joining:
            self._joined[self._roster[0]] = row.total
            self._joining = None
        if not row.key.startswith(RELEASED):
            return ""
        key = row.key[len(RELEASED) :]
        place = (key, row.window)
        self._released[place] = max(row.total, self._released.get(place, 0))
        if self._planned.get(place, (0, 0))[0] <= row.total:
            self._planned.pop(place, None)
        if len(self._released) > _KEPT_MAX:
            del self._released[next(iter(self._released))]
        return key

    def _join(self, name: str, since_ms: int, wall_ms: int) -> None:
        """Have it written since when this name is in the roster; at the begin of a life once more, for the months to come."""
        key = f"{JOINED}{name}/{_MONTH_MS}"
        self._joining = Minted(key, wall_ms // _MONTH_MS, since_ms)
        self._tried_ms = -_AGAIN_MS
        self._renewed = True

    def _joined_ms(self) -> int:
        return self._joined.get(self._roster[0], _NEVER_MS)


def without_released(
    remembered: Mapping[tuple[str, int], int] | None,
) -> Mapping[tuple[str, int], int] | None:
    """Return the rest of what a disk says."""
    if remembered is None:
        return None
    return {
        place: n for place, n in remembered.items() if not place[0].startswith((RELEASED, JOINED))
    }
