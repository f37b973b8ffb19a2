"""Disk archive: replicated state on a host's disk, piece by piece, and backups of it."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.simulate.base.virtual_clock import SECOND
from smg_chaos.simulate.hosts.state_write import Cell, Write

BACKUP_APART_US: Final = 4 * SECOND
BACKUPS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Backup:
    """The disk as it once was."""

    at_us: int
    files: Mapping[str, bytes]
    wall_ms: int | None
    sure: Mapping[Cell, Write]


@dataclass(slots=True)
class Archive:
    """Files by piece. `sure` is what counted for the node when all its pieces had been written."""

    files: dict[str, bytes] = field(default_factory=dict)
    wall_ms: int | None = None
    """What its clock showed when the node last said that it runs."""
    sure: Mapping[Cell, Write] = field(default_factory=dict)
    backups: deque[Backup] = field(default_factory=lambda: deque(maxlen=BACKUPS_MAX))

    def write(self, name: str, content: bytes) -> None:
        """Replace a file; an empty one is none."""
        if content:
            self.files[name] = content
        else:
            self.files.pop(name, None)

    def complete(self, sure: Mapping[Cell, Write], *, now_us: int) -> None:
        """All pieces are written: from now on an earlier life's end loses nothing of `sure`."""
        self.sure = sure
        if not self.backups or now_us - self.backups[-1].at_us >= BACKUP_APART_US:
            self.backups.append(Backup(now_us, dict(self.files), self.wall_ms, sure))

    def turn_back(self, to_us: int) -> bool:
        """Put back the newest backup that is no newer than that; False if there is none."""
        while self.backups and self.backups[-1].at_us > to_us:
            self.backups.pop()
        if not self.backups:
            return False
        old = self.backups[-1]
        self.files, self.wall_ms, self.sure = dict(old.files), old.wall_ms, old.sure
        return True
