"""Usage log on disk: one JSON Lines file a day, a line per total that has grown, with retention.

    usage/NAME/usage-2026-11-22.jsonl    ["part", hour, "tenant", "key", "model", requests, refused, …]
    usage/NAME/lock                      held by the one process that writes

Lines are totals, so that the latest of a part counts and nothing is wrong with one that is there
twice. One that is torn is skipped, and the next begins on a line of its own. A file that has grown
much is written anew with one line for each total; what earlier runs of the node wrote becomes one
part. It is there whole or as it was before.

Everything here blocks: call it in a thread, one call at a time.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from smg_node.admission.usage.usage_lines import Counts, Line, Who, line, merged

DAYS_KEPT: Final = 40
"""A month that is over can be read for another week."""
GROWN_BYTES_MAX: Final = 1_048_576
"""A file that has grown by so much, and to twice its size, is written anew."""
FILE_BYTES_MAX: Final = 512 * 1_048_576
"""More is not read of a file; a thousand rows an hour are a few megabytes a day."""
EARLIER: Final = ""
"""The part of all that earlier lives wrote."""
_EPOCH: Final = date(1970, 1, 1).toordinal()
_PREFIX: Final = "usage-"
_SUFFIX: Final = ".jsonl"
_DECODER: Final = msgspec.json.Decoder(Line)
_ENCODER: Final = msgspec.json.Encoder()


class UsageLog:
    """Log folder of one node. `life` is what the parts of this process begin with."""

    def __init__(self, folder: Path, life: str) -> None:
        self.torn = 0
        """Lines that could not be read so far, the same ones again at each reading."""
        self._folder: Final = folder
        self._own: Final = f"{life}."
        self._lock: int | None = None
        self._grown: dict[int, int] = {}
        self._base: dict[int, int] = {}

    def append(self, lines: Sequence[Line]) -> None:
        """Return once they are on the disk itself. OSError: some may be, and all are to be written again."""
        self._take_lock()
        days: dict[int, list[Line]] = {}
        for one in lines:
            days.setdefault(one.hour // 24, []).append(one)
        for day, of_day in sorted(days.items()):
            self._append(day, of_day)
            grown = self._grown[day]
            if grown > max(GROWN_BYTES_MAX, self._base.get(day, 0)):
                # A disk without room for the copy has had room for the lines.
                with contextlib.suppress(OSError):
                    self.compact(day)
                self._grown[day] = 0

    def read(self, first: int, end: int) -> list[Line]:
        """Return the latest totals of the hours from `first` to before `end`. OSError if that cannot be."""
        found: list[Line] = []
        for day in range(first // 24, (end - 1) // 24 + 1):
            found += (one for one in self._read(day) if first <= one.hour < end)
        return found

    def compact(self, day: int) -> None:
        """Write a day's file anew, with one line for each total. OSError: it is as it was."""
        own: list[Line] = []
        earlier: dict[tuple[int, Who], Counts] = {}
        for one in self._read(day):
            if one.part.startswith(self._own):
                own.append(one)
            else:
                earlier.setdefault((one.hour, one.who), Counts()).add(one)
        summed = (line(EARLIER, hour, who, counts) for (hour, who), counts in earlier.items())
        content = _encoded([*summed, *own])
        _replace(self._path(day), content)
        self._base[day] = len(content)

    def forget(self, today: int) -> list[str]:
        """Remove the files of days that are too long ago, and return their names."""
        gone: list[str] = []
        if not self._folder.exists():
            return gone
        self._take_lock()
        for name in sorted(os.listdir(self._folder)):
            day = _day_of(name)
            if day is not None and day < today - DAYS_KEPT:
                (self._folder / name).unlink(missing_ok=True)
                gone.append(name)
        return gone

    def close(self) -> None:
        """Let another process write."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    # ── One file ─────────────────────────────────────────────────────────────

    def _append(self, day: int, lines: Sequence[Line]) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path(day), flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            content = (b"\n" if torn else b"") + _encoded(lines)
            # What a failed write leaves counts as grown too: it is in the file.
            self._grown[day] = self._grown.get(day, size) + len(content)
            _write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, day: int) -> list[Line]:
        try:
            with self._path(day).open("rb") as file:
                content = file.read(FILE_BYTES_MAX)
        except FileNotFoundError:
            return []
        return list(merged(list(self._decoded(content))).values())

    def _decoded(self, content: bytes) -> Iterable[Line]:
        for text in content.split(b"\n"):
            if not text:
                continue
            try:
                yield _DECODER.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self.torn += 1

    def _path(self, day: int) -> Path:
        return self._folder / f"{_PREFIX}{date.fromordinal(_EPOCH + day).isoformat()}{_SUFFIX}"

    def _take_lock(self) -> None:
        """Become the one writer; BlockingIOError if another process is."""
        if self._lock is not None:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(self._folder / "lock", flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise
        self._lock = lock


def _encoded(lines: Iterable[Line]) -> bytes:
    return b"".join(_ENCODER.encode(one) + b"\n" for one in lines)


def _day_of(name: str) -> int | None:
    """Return the day a file is of, None if it is none of ours."""
    if not name.startswith(_PREFIX) or not name.endswith(_SUFFIX):
        return None
    try:
        return (
            date.fromisoformat(name.removeprefix(_PREFIX).removesuffix(_SUFFIX)).toordinal()
            - _EPOCH
        )
    except ValueError:
        return None


def _write(descriptor: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(descriptor, content[written:])


def _replace(path: Path, content: bytes) -> None:
    """Put `content` where `path` is, whole or not at all."""
    new = path.with_name(path.name + ".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            _write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
