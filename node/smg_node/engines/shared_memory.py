"""Shared memory: tensors for engines of this machine as files in /dev/shm, and a ledger of those that are not read yet.

An engine reads such a file and removes it. Whatever it did not read (its call failed, was cancelled or tried again, or
the engine ended) is removed by `release`. A process that ended with files in its ledger leaves them behind; the next
one that uses shared memory sweeps them. To tell those of the dead from those of the living, all files of one ledger
carry its name, and a file of that name is locked for as long as the ledger is not empty: the system lets go of the lock
when the process ends, whatever it ended by, and on every container that shares the folder.

    smg-node-<16 hex digits of the ledger>.lock        smg-node-<the same>-<32 random hex digits>

Files are for the owner only (0600), so that an engine of another user cannot open them.
"""

import fcntl
import os
import re
import secrets
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from smg_node.engines.transport.message_pieces import Piece

FOLDER: Final = Path("/dev/shm")
PREFIX: Final = "smg-node-"
HELD_MAX_BYTES: Final = 1 << 30
"""What may wait for engines to read it; tensors beyond it go in their messages."""
PIECES_AT_ONCE: Final = 512
"""Buffers of one write; the system takes 1,024."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_FILE: Final = re.compile(rf"{PREFIX}([0-9a-f]{{16}})(\.lock|-[0-9a-f]{{32}})")
_TRIES: Final = 8
_MODE: Final = 0o600
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def namespace(folder: Path = FOLDER) -> str:
    """Return what tells this folder from that of another machine or container, as engines say it; "" if unknown."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
        return f"{boot}:{folder.stat().st_dev}"
    except (OSError, UnicodeDecodeError):
        return ""


class SharedMemory:
    """The files of one process. Its methods block for as long as the memory takes, and may be called from any thread."""

    def __init__(self, folder: Path = FOLDER, *, held_max_bytes: int = HELD_MAX_BYTES) -> None:
        self.namespace: Final = namespace(folder)
        self._folder = folder
        self._held_max_bytes = held_max_bytes
        self._guard = threading.Lock()
        self._held: dict[str, int] = {}
        self._ledger = ""
        self._lock = -1

    def __len__(self) -> int:
        return len(self._held)

    def write(self, pieces: Sequence[Piece]) -> str | None:
        """Write buffers into one new file and return its name; None if there is no room, or it cannot be done."""
        views = [memoryview(piece).cast("B") for piece in pieces]
        size = sum(map(len, views))
        name = self._enter(size)
        if name is None:
            return None
        try:
            handle = os.open(self._folder / name, os.O_WRONLY | _NEW, _MODE)
            try:
                _write_all(handle, views)
            finally:
                os.close(handle)
        except OSError:
            self.release([name])
            return None
        return name

    def release(self, names: Iterable[str]) -> None:
        """Remove files that may not have been read; harmless for those that were, and the second time."""
        with self._guard:
            for name in names:
                if self._held.pop(name, None) is not None:
                    with suppress(OSError):
                        (self._folder / name).unlink()
            if not self._held and self._lock >= 0:
                self._end_ledger()

    def sweep(self) -> int:
        """Remove what processes left behind that are no more; return how many files."""
        found: dict[str, list[Path]] = {}
        try:
            names = os.listdir(self._folder)
        except OSError:
            return 0
        for name in sorted(names):
            match = _FILE.fullmatch(name)
            if match is not None and match[1] != self._ledger:
                found.setdefault(match[1], []).append(self._folder / name)
        return sum(self._swept(ledger, files) for ledger, files in found.items())

    def _swept(self, ledger: str, files: Sequence[Path]) -> int:
        lock = self._folder / f"{PREFIX}{ledger}.lock"
        try:
            handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            handle = -1  # only its beginning was lost, or its end
        except OSError:
            return 0  # another user's
        try:
            if handle >= 0:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return sum(map(_removed, files))
        except OSError:
            return 0  # its process lives
        finally:
            if handle >= 0:
                os.close(handle)

    def _enter(self, size: int) -> str | None:
        """Write a new name of `size` bytes into the ledger; None where that would be too much."""
        with self._guard:
            if sum(self._held.values()) + size > self._held_max_bytes:
                return None
            if self._lock < 0 and not self._begin_ledger():
                return None
            name = f"{PREFIX}{self._ledger}-{secrets.token_hex(16)}"
            self._held[name] = size
            return name

    def _begin_ledger(self) -> bool:
        """Lock a file of a new name."""
        for _ in range(_TRIES):
            ledger = secrets.token_hex(8)
            try:
                handle = os.open(self._folder / f"{PREFIX}{ledger}.lock", os.O_RDWR | _NEW, _MODE)
            except OSError:
                return False
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink:
                self._ledger, self._lock = ledger, handle
                return True
            os.close(handle)  # somebody swept it between its making and its locking
        return False

    def _end_ledger(self) -> None:
        with suppress(OSError):
            (self._folder / f"{PREFIX}{self._ledger}.lock").unlink()
        os.close(self._lock)
        self._ledger, self._lock = "", -1


def _write_all(handle: int, views: Sequence[memoryview]) -> None:
    for at in range(0, len(views), PIECES_AT_ONCE):
        some = list(views[at : at + PIECES_AT_ONCE])
        while some:
            wrote = os.writev(handle, some)
            while some and wrote >= len(some[0]):
                wrote -= len(some.pop(0))
            if some:
                some[0] = some[0][wrote:]


def _removed(path: Path) -> int:
    try:
        path.unlink()
    except OSError:
        return 0
    return 1
