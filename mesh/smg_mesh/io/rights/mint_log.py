"""Mint log: what this node's votes said was minted, on the disk itself;
appended to, begun anew when long.

    rights/minted.log    frames, one for each write that was synced:
                         "MINT" | bytes 4 | BLAKE2b-8 of the rest | msgpack [[key, window, total, kept until], …]
    rights/roster.json   the roster of the last life
    rights/founding.json what was promised while there was none; gone once there is one

A vote leaves only after its frame is synced, so what was never synced was never said: a torn frame
at the end is cut off. A broken frame with a good one behind it is damage: then it is unknown what
this node has voted for, and it says that it does not remember, as it does when the log is missing
and the roster is there.

Of what was lent of permits (`escrow/permits/permit_loans`) only the line with the largest revision
is in force, and for good as long as it is not 0.

Everything here blocks: call it in a thread, one call at a time.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.permits.permit_loans import LENT
from smg_mesh.io.atomic_files import lock_file, replace_file, sync_folder, write_durably

MAGIC: Final = b"MINT"
FRAME_BYTES_MAX: Final = 1_048_576
LOG_BYTES_MAX: Final = 1_048_576
"""A log that has grown by so much beyond what is in force is begun anew."""
FILE_BYTES_MAX: Final = 64 * 1_048_576
_HEAD_BYTES: Final = 16
_LOG: Final = "minted.log"
_ROSTER: Final = "roster.json"
_FOUNDING: Final = "founding.json"
_LOCK: Final = "rights.lock"
_ROSTER_BYTES_MAX: Final = 262_144

Kept = TypeVar("Kept", Roster, FoundingState)
Total: TypeAlias = tuple[str, int]
"""Of which key and window."""


class Line(msgspec.Struct, frozen=True, array_like=True):
    """So much of a window was minted in all; of no interest after that wall-clock time."""

    key: str
    window: Annotated[int, Meta(ge=0)]
    total: Annotated[int, Meta(ge=0)]
    until_ms: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """Contents that an earlier life left. `minted` is None where it may not be all."""

    minted: Mapping[Total, int] | None
    roster: Roster | None
    damage: str = ""
    """What the operator should hear about the files."""
    founding: FoundingState | None = None


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[Line, ...])


def frame(lines: Sequence[Line]) -> bytes:
    """Return what is appended for them."""
    body = _ENCODER.encode(lines)
    assert len(body) <= FRAME_BYTES_MAX
    return MAGIC + len(body).to_bytes(4, "big") + _sum(body) + body


def read_frames(content: bytes) -> tuple[list[Line], int, bool]:
    """Return what the frames say, how many bytes of it are good, and whether anything good comes after them."""
    lines: list[Line] = []
    good = 0
    while good < len(content):
        read = _frame_at(content, good)
        if read is None:
            break
        lines += read[0]
        good = read[1]
    return lines, good, _good_behind(content, good)


def _good_behind(content: bytes, broken: int) -> bool:
    """Return whether a good frame begins anywhere behind a broken one."""
    start = content.find(MAGIC, broken + 1)
    while start >= 0:
        if _frame_at(content, start) is not None:
            return True
        start = content.find(MAGIC, start + 1)
    return False


def _frame_at(content: bytes, start: int) -> tuple[tuple[Line, ...], int] | None:
    head = content[start : start + _HEAD_BYTES]
    if len(head) < _HEAD_BYTES or not head.startswith(MAGIC):
        return None
    end = start + _HEAD_BYTES + int.from_bytes(head[4:8], "big")
    body = content[start + _HEAD_BYTES : end]
    if end > len(content) or head[8:] != _sum(body):
        return None
    try:
        return _DECODER.decode(body), end
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _sum(body: bytes) -> bytes:
    return blake2b(body, digest_size=8, person=b"smg mints").digest()


class MintLog:
    """The folder of one node, in use by one process at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._lock: int | None = None
        self._log: int | None = None
        self._read = False
        self._bytes = 0
        self._totals: dict[Total, Line] = {}

    def open(self, *, wall_ms: int) -> Recalled:
        """Return what an earlier life left, and begin to write behind it. OSError if there is no folder to be had."""
        new = not self._folder.exists()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._take_folder()
        roster, damage = self._read_json(_ROSTER, Roster)
        lines, whole, trouble = self._read_log(fresh=new or (roster is None and not damage))
        for line in lines:
            self._take(line)
        self._read = True
        self._begin_anew(wall_ms)
        totals = {(line.key, line.window): line.total for line in self._totals.values()}
        minted = totals if whole else None
        founding, doubt = self._read_json(_FOUNDING, FoundingState)
        # Promises say that no life before went by a roster: a roster that cannot be read says otherwise.
        founding = None if roster is not None or damage or not whole else founding
        troubles = "; ".join(filter(None, (damage, trouble, doubt)))
        return Recalled(minted, roster, troubles, founding)

    def append(self, lines: Sequence[Line], *, wall_ms: int) -> None:
        """Return once they are on the disk itself. OSError: they are not, and the log is as it was."""
        if not self._read:
            # What lies there was not read when this life began: it is kept nevertheless.
            self.open(wall_ms=wall_ms)
        if self._log is None:
            self._begin_anew(wall_ms)
        assert self._log is not None
        content = frame(lines)
        try:
            _write(self._log, content)
            os.fsync(self._log)
        except OSError:
            # What a disk has of a write that failed is unknown: the next one begins a new file.
            self._let_go()
            raise
        self._bytes += len(content)
        for line in lines:
            self._take(line)
        if self._bytes > LOG_BYTES_MAX:
            self._begin_anew(wall_ms)

    def keep_roster(self, roster: Roster) -> None:
        """Return once the roster is on the disk itself; OSError: the one before it still is."""
        self._take_folder()
        write_durably(self._folder / _ROSTER, msgspec.json.encode(roster))
        (self._folder / _FOUNDING).unlink(missing_ok=True)

    def keep_founding(self, state: FoundingState) -> None:
        """Return once it is on the disk itself; OSError: what was there before still is."""
        self._take_folder()
        write_durably(self._folder / _FOUNDING, msgspec.json.encode(state))

    def close(self) -> None:
        """Give the folder to the next."""
        self._let_go()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    @property
    def kept(self) -> int:
        """How many totals are in force."""
        return len(self._totals)

    def _take_folder(self) -> None:
        if self._lock is not None:
            return
        self._lock = lock_file(self._folder / _LOCK)
        if self._lock is None:
            raise OSError(errno.EBUSY, f"another process uses {self._folder}")

    def _let_go(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            os.close(log)

    def _take(self, line: Line) -> None:
        if line.key.startswith(LENT):
            last = self._totals.get((line.key, 0))
            if last is None or line.window >= last.window:
                self._totals[line.key, 0] = line
            return
        known = self._totals.get((line.key, line.window))
        if known is None or line.total > known.total:
            self._totals[line.key, line.window] = line

    def _begin_anew(self, wall_ms: int) -> None:
        """Write a file of what is in force only, and go on behind that."""
        self._let_go()
        self._totals = {key: one for key, one in self._totals.items() if one.until_ms > wall_ms}
        path = self._folder / _LOG
        content = b"".join(map(frame, _slices(list(self._totals.values()))))
        replace_file(path, content)
        sync_folder(self._folder)
        self._log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._bytes = 0

    def _read_log(self, *, fresh: bool) -> tuple[Iterable[Line], bool, str]:
        """Return the lines, whether they are all there ever were, and what is wrong."""
        path = self._folder / _LOG
        try:
            content = _bounded(path, FILE_BYTES_MAX)
        except FileNotFoundError:
            return (), fresh, "" if fresh else f"{path} is gone: it is not known what was minted"
        lines, good, more = read_frames(content)
        if not more and len(content) < FILE_BYTES_MAX:
            return lines, True, ""
        os.replace(path, path.with_name(path.name + ".damaged"))
        text = (
            f"{path} is damaged after {good} bytes and set aside: it is not known what was minted"
        )
        return lines, False, text

    def _read_json(self, name: str, kind: type[Kept]) -> tuple[Kept | None, str]:
        path = self._folder / name
        try:
            return msgspec.json.decode(_bounded(path, _ROSTER_BYTES_MAX), type=kind), ""
        except FileNotFoundError:
            return None, ""
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            os.replace(path, path.with_name(path.name + ".damaged"))
            return None, f"{path} is damaged and set aside: {error}"


def _slices(lines: Sequence[Line], size: int = 1_000) -> Iterable[Sequence[Line]]:
    return (lines[start : start + size] for start in range(0, len(lines), size))


def _write(descriptor: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(descriptor, content[written:])


def _bounded(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        return file.read(bytes_max)
