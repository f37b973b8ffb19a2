"""Event rate: how many events a client sends a second, and whether it has sent too many for too long. Pure."""

from typing import Final

_SECOND_MS: Final = 1_000


class EventRate:
    """Counts events by whole seconds. Too many in each of `seconds_max` seconds in a row is too long."""

    __slots__ = ("_count", "_most", "_over", "_second", "_seconds_max")

    def __init__(self, *, per_second: int, seconds_max: int) -> None:
        self._most = per_second
        self._seconds_max = seconds_max
        self._second = 0
        self._count = 0
        self._over = 0
        """How many seconds before this one had too many, without one between them that had not."""

    def is_exceeded(self, now_ms: int) -> bool:
        """Count one event; true if there have been too many for too long."""
        second = now_ms // _SECOND_MS
        if second != self._second:
            in_a_row = second == self._second + 1 and self._count > self._most
            self._over = self._over + 1 if in_a_row else 0
            self._second, self._count = second, 0
        self._count += 1
        return self._over + (self._count > self._most) >= self._seconds_max
