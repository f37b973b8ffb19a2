"""Spool folder: append-only files of one process's turns, each with a file of those that are done.

    spool/NODE/LIFE/lock             held by the process that uses the folder; free when it is dead
    spool/NODE/LIFE/00000001.turns   turns, in the order of acknowledgement
    spool/NODE/LIFE/00000001.done    8 bytes for each turn that the store has: where its frame begins

A turn is acknowledged when it is synced to disk. A file is deleted when the store has all of it,
and not before. The done mark is on the disk before a turn is forgotten here, because a turn written
again after its response was deleted would bring the response back.

Everything here blocks: call it in a thread, one call at a time.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from smg_node.history.spool import spool_format as form

SEGMENT_BYTES_MAX: Final = 64 << 20
"""A file that is longer is not appended to: then the next one begins."""
_TURNS: Final = ".turns"
_DONE: Final = ".done"
_LOCK: Final = "lock"
_PLACE_BYTES: Final = 8


class Place(NamedTuple):
    """Position of a turn's body: file, start and end."""

    segment: int
    start: int
    end: int


class SpoolFolder:
    """One process's folder. `salt` makes the 16 bytes that each file begins with."""

    def __init__(self, path: Path, *, salt: Callable[[], bytes]) -> None:
        self.path: Final = path
        self.broken = 0
        """Places in its files that made no sense, before others that did."""
        self._salt: Final = salt
        self._lock: int | None = None
        self._file: int | None = None
        self._current = 0
        self._at = 0
        self._salt_now = b""
        self._left: dict[int, int] = {}
        """How many turns of which file are not done."""
        self._over: set[int] = set()
        """Files that are not appended to any more."""

    # ── The folder ───────────────────────────────────────────────────────────

    def take(self) -> bool:
        """Lock the folder for this process; False if another one has it. The folder is made if it
        is not there.
        """
        if self._lock is not None:
            return True
        self._make()
        lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        except OSError:
            os.close(lock)
            raise
        self._lock = lock
        return True

    def read(self) -> Iterator[tuple[Place, bytes]]:
        """Yield turns of an earlier process that are not done, in order; each file is read whole."""
        for segment in self._segments():
            try:
                content = self._path(segment, _TURNS).read_bytes()
            except FileNotFoundError:
                content = b""
            done = self._done_of(segment)
            found = form.frames_of(content)
            self.broken += found.broken
            left = [one for one in found.frames if one.start not in done]
            self._current = max(self._current, segment)
            self._left[segment] = len(left)
            self._over.add(segment)
            if not left:
                self._remove(segment)
            for one in left:
                yield Place(segment, one.start, one.end), content[one.start : one.end]

    @property
    def empty(self) -> bool:
        """Whether no turn is left in it."""
        return not any(self._left.values())

    def close(self) -> None:
        """Unlock the folder, and remove it if no turn is left in it."""
        self._end_file()
        if self._lock is None:
            return
        if self.empty:
            for segment in list(self._left):
                self._remove(segment)
            with contextlib.suppress(OSError):
                (self.path / _LOCK).unlink()
                self.path.rmdir()
        os.close(self._lock)
        self._lock = None

    # ── Turns ────────────────────────────────────────────────────────────────

    def append(self, bodies: Sequence[bytes]) -> Sequence[Place]:
        """Return the positions of bodies once they are synced to disk. OSError: none of them is
        stored, and none will appear.
        """
        file = self._open_file()
        before, places, frames = self._at, [], []
        for body in bodies:
            framed = form.frame(body, self._salt_now)
            end = self._at + len(framed)
            places.append(Place(self._current, end - len(body), end))
            frames.append(framed)
            self._at = end
        try:
            for framed in frames:
                _write(file, framed)
            os.fsync(file)
        except OSError:
            self._take_back(file, before)
            raise
        self._left[self._current] += len(places)
        if self._at > SEGMENT_BYTES_MAX:
            self._end_file()
        return places

    def load(self, place: Place) -> bytes:
        """Return the body of a turn; OSError if it cannot be read."""
        with self._path(place.segment, _TURNS).open("rb") as file:
            file.seek(place.start)
            return file.read(place.end - place.start)

    def done(self, places: Iterable[Place]) -> None:
        """Note on the disk that the store has them, and remove files of which it has all."""
        by_segment: dict[int, list[Place]] = {}
        for place in places:
            by_segment.setdefault(place.segment, []).append(place)
        for segment, ones in by_segment.items():
            left = self._left[segment] - len(ones)
            assert left >= 0
            self._note(segment, ones)
            self._left[segment] = left
            if not left:
                if segment == self._current and segment not in self._over:
                    self._end_file()
                self._remove(segment)

    def _note(self, segment: int, places: Sequence[Place]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(self._path(segment, _DONE), flags, 0o600)
        try:
            # What was torn before does not shift what comes now.
            torn = os.fstat(file).st_size % _PLACE_BYTES
            content = bytes(-torn % _PLACE_BYTES)
            content += b"".join(place.start.to_bytes(_PLACE_BYTES, "big") for place in places)
            _write(file, content)
            os.fsync(file)
        finally:
            os.close(file)

    # ── Files ────────────────────────────────────────────────────────────────

    def _open_file(self) -> int:
        """Return the file to append to, a new one if there is none."""
        if self._file is not None:
            return self._file
        if not self.take():
            raise BlockingIOError(f"another process uses {self.path}")
        segment, salt = self._current + 1, self._salt()
        path = self._path(segment, _TURNS)
        self._current = segment
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write(file, form.header(salt))
            _sync_folder(self.path)
        except OSError:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        self._file, self._salt_now, self._at = file, salt, form.HEADER_BYTES
        self._left[segment] = 0
        return file

    def _take_back(self, file: int, length: int) -> None:
        """Cut off what was not acknowledged; the next turn begins a new file, whatever the disk
        kept of this one.
        """
        with contextlib.suppress(OSError):
            os.ftruncate(file, length)
            os.fsync(file)
        self._end_file()

    def _end_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
            self._over.add(self._current)
            if not self._left[self._current]:
                self._remove(self._current)

    def _remove(self, segment: int) -> None:
        """Delete a file. The turns go first: without them the done marks do not matter."""
        self._left.pop(segment, None)
        self._over.discard(segment)
        turns, done = self._path(segment, _TURNS), self._path(segment, _DONE)
        if done.exists():
            turns.unlink(missing_ok=True)
            _sync_folder(self.path)
            done.unlink(missing_ok=True)
        else:
            turns.unlink(missing_ok=True)

    def _make(self) -> None:
        if self.path.is_dir():
            return
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.path.parent, self.path.parent.parent, self.path.parent.parent.parent):
            _sync_folder(folder)

    def _segments(self) -> list[int]:
        names = {one.stem for one in self.path.iterdir() if one.suffix in (_TURNS, _DONE)}
        return sorted(int(name) for name in names if name.isdecimal())

    def _done_of(self, segment: int) -> frozenset[int]:
        try:
            content = self._path(segment, _DONE).read_bytes()
        except FileNotFoundError:
            return frozenset()
        whole = len(content) - len(content) % _PLACE_BYTES
        return frozenset(
            int.from_bytes(content[at : at + _PLACE_BYTES], "big")
            for at in range(0, whole, _PLACE_BYTES)
        )

    def _path(self, segment: int, suffix: str) -> Path:
        return self.path / f"{segment:08d}{suffix}"


def _write(file: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(file, memoryview(content)[written:])


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
