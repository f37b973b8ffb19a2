"""Headroom of the machine during a measurement, since a busy machine makes every gateway look
bad.
"""

from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/stat")
_IDLE: Final = (3, 4)
"""Places of the ticks in which a core had nothing to do, or waited for a disk."""


class Headroom:
    """The share of all cores that was idle since its creation, or since the last look."""

    def __init__(self, stat: Path = _STAT) -> None:
        self._stat = stat
        self._before = self._ticks()
        self.least = 1.0

    def look(self) -> float:
        """Return the idle share since the last look, 0..1, and keep the least."""
        idle, total = self._ticks()
        spent = total - self._before[1]
        share = (idle - self._before[0]) / spent if spent else 1.0
        self._before = idle, total
        self.least = min(self.least, share)
        return share

    def _ticks(self) -> tuple[int, int]:
        first = self._stat.read_text().partition("\n")[0]
        ticks = [int(word) for word in first.split()[1:9]]
        return sum(ticks[place] for place in _IDLE), sum(ticks)
