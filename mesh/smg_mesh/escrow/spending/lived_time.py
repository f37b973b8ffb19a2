"""Lived time: moments of the wall clock that any life of this node has seen: nothing stands twice.

What stands needs no message, so only the node itself knows that it has spent it. A clock that was ahead, or that is
set back between two lives, would let the next life spend the same windows once more. So this is kept on disk:
for every ten minutes of the wall clock the furthest moment that a life has seen in them. It is written every
two seconds while something is spent, at the begin of a life and when the clock jumps ahead; after these two
nothing stands until it is written. A life that begins adds what the one before may not have written any more.

Times in years to come are no harm: nothing stands in those minutes, and everything before and after does.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.escrow.spending.standing_rights import SLICE_MS

_MINUTES_MS: Final = 600_000
LIVED_KEY: Final = f"!lived#none/{_MINUTES_MS}"
"""On disk: (this, number of the ten minutes) → the furthest moment in them."""
WRITE_MS: Final = 2_000
SLACK_MS: Final = 2_500
"""A life may have gone on for so long after what it wrote last: between two writes, and while one is under way."""
_AGAIN_MS: Final = 1_000
_JUMP_MS: Final = 250
_PACE: Final = 64
"""Of two clocks one may be faster by this part; what is more is a jump."""
_SPANS_MAX: Final = 1_000
_STRETCH_MAX: Final = 300
"""Two days: a clock that is set back farther is one nobody can follow."""
_FOLLOWED_MS: Final = _STRETCH_MAX * _MINUTES_MS
_RANGES_MAX: Final = 16


class LivedTime:
    """Lived time of one life. `known`: the disk has where its clock is; nothing stands before."""

    def __init__(
        self,
        remembered: Mapping[tuple[str, int], int] | None,
        *,
        now_ms: int,
        wall_ms: int,
        before: "LivedTime | None" = None,
    ) -> None:
        """Begin with what the disk says, and with the life before if it was in this process."""
        spans: dict[int, int] = {} if before is None else dict(before._spans)
        if before is not None:
            spans |= before._reached()
        for (key, number), furthest_ms in (remembered or {}).items():
            if key == LIVED_KEY:
                spans[number] = max(furthest_ms + SLACK_MS, spans.get(number, 0))
        self.known = False
        self._spans: dict[int, int] = dict(sorted(spans.items())[-_SPANS_MAX:])
        """Of lives before: the end of what was lived, by the number of the ten minutes."""
        self._now_ms = now_ms
        self._wall_ms = self._furthest_ms = wall_ms
        self._began_ms = wall_ms
        self._wrote_ms = -1
        self._tried_ms = now_ms - _AGAIN_MS
        self._ranges: list[tuple[int, int]] = []
        """Stretches between jumps of the clock, of this process."""
        if before is not None:
            self._ranges = [*before._ranges, (before._began_ms, before._furthest_ms)][-_RANGES_MAX:]
        self._before_ms = max(self._spans.values(), default=0)
        """The furthest moment of all stretches but the one of now."""

    def see(self, *, now_ms: int, wall_ms: int) -> None:
        """Look at both clocks; before anything is said to stand."""
        if now_ms == self._now_ms and wall_ms == self._wall_ms:
            return
        passed_ms = now_ms - self._now_ms
        if wall_ms - self._wall_ms > passed_ms + _JUMP_MS + passed_ms // _PACE:
            self._go_on_at(wall_ms)
            self.known = False
            self._tried_ms = now_ms - _AGAIN_MS
        elif wall_ms < self._wall_ms - _JUMP_MS:
            self._go_on_at(wall_ms)
        self._now_ms, self._wall_ms = now_ms, wall_ms
        self._furthest_ms = max(self._furthest_ms, wall_ms)

    def until_ms(self, turn_ms: int) -> int:
        """Return up to when lives before may have spent what stands around that moment; 0 if they have not."""
        if not self._spans:
            return 0
        return max(
            (
                end_ms
                for number, end_ms in self._spans.items()
                if number * _MINUTES_MS - SLICE_MS <= turn_ms
            ),
            default=0,
        )

    def has_passed(self, moment_ms: int) -> bool:
        """Return whether the clock of some life was at that moment or beyond it: what ended then, was over once."""
        return self.latest_ms(moment_ms - 1) >= moment_ms

    def lived_beyond(self, moment_ms: int) -> bool:
        """Return whether a life before this one was there after that moment."""
        return any(end_ms > moment_ms for end_ms in self._spans.values())

    def latest_ms(self, wall_ms: int) -> int:
        """Return the furthest moment that any life has seen, if not that one; of two days at most from there on."""
        if wall_ms >= max(self._before_ms, self._furthest_ms):
            return wall_ms
        ends_ms = [self._furthest_ms, *(end_ms for _, end_ms in self._ranges)]
        # What a life may have gone on for is no sign of a clock that was set back.
        ends_ms += [end_ms for end_ms in self._spans.values() if end_ms - SLACK_MS > wall_ms]
        until_ms = wall_ms + _FOLLOWED_MS
        return max([wall_ms, *(end_ms for end_ms in ends_ms if end_ms <= until_ms)])

    def unwritten(self, *, spends: bool) -> tuple[Minted, ...]:
        """Return what is to be written now, if anything; `spends`: there is something that may be charged."""
        if self._now_ms - self._tried_ms < _AGAIN_MS or (self.known and not spends):
            return ()
        if self.known and 0 <= self._furthest_ms - self._wrote_ms < WRITE_MS:
            return ()
        self._tried_ms = self._now_ms
        ends = _minutes(self._began_ms, self._furthest_ms)[-2:]
        return tuple(Minted(LIVED_KEY, number, end_ms) for number, end_ms in ends)

    def written(self, rows: Sequence[Minted]) -> None:
        """Learn what is on disk."""
        for row in rows:
            if row.key == LIVED_KEY and self._began_ms <= row.total <= self._furthest_ms:
                self._wrote_ms = max(self._wrote_ms, row.total)
                self.known = True

    def _go_on_at(self, wall_ms: int) -> None:
        """Keep what was lived until the clock jumped in mind, for a life to come in this process."""
        self._ranges = [*self._ranges, (self._began_ms, self._furthest_ms)][-_RANGES_MAX:]
        self._before_ms = max(self._before_ms, self._furthest_ms)
        self._began_ms = self._furthest_ms = wall_ms
        self._wrote_ms = -1

    def _reached(self) -> dict[int, int]:
        """Return the furthest moments of this life, by the number of the ten minutes."""
        reached: dict[int, int] = {}
        for began_ms, furthest_ms in [*self._ranges, (self._began_ms, self._furthest_ms)]:
            for number, end_ms in _minutes(began_ms, furthest_ms):
                reached[number] = max(end_ms, reached.get(number, 0))
        return reached


def without_lived(
    remembered: Mapping[tuple[str, int], int] | None,
) -> Mapping[tuple[str, int], int] | None:
    """Return the rest of what a disk says."""
    if remembered is None:
        return None
    return {place: total for place, total in remembered.items() if place[0] != LIVED_KEY}


def _minutes(began_ms: int, furthest_ms: int) -> list[tuple[int, int]]:
    """Return the furthest moments of one stretch, by the number of the ten minutes, as far back as matters."""
    first, last = began_ms // _MINUTES_MS, furthest_ms // _MINUTES_MS
    numbers = range(max(first, last - _STRETCH_MAX), last + 1)
    return [(number, min(furthest_ms, (number + 1) * _MINUTES_MS)) for number in numbers]
