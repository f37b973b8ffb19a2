"""State files: the folder of one node's replicated state: one file a piece, and one that says when.

    settings-17.bin    "smgstate" | version 1 | BLAKE2b-16 of the rest | msgpack [name, content]
    when.json          when this folder was last known to be up to date, and by which life

The sum is there because a damaged document would be merged without a word. A file that is not what
was written is set aside as `*.damaged`, where the next damaged one replaces it. All of this blocks: call it
in a thread.

A folder belongs to one process at a time. A node that has none takes over the first of `before`
that is there and not in use: by a rename, so it is in one place or the other.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from smg_mesh.io.atomic_files import lock_file, replace_file, sync_folder
from smg_mesh.sync.exchange.piece_interface import PIECE_NAME_CHARS_MAX, PIECES_MAX

FILE_BYTES_MAX: Final = 4_194_304
"""A document beside its predecessor, with room to spare."""
DAMAGED: Final = ".damaged"
_SUFFIX: Final = ".bin"
_HEAD: Final = b"smgstate\1"
_SUM_BYTES: Final = 16
_WHEN: Final = "when.json"
_WHEN_BYTES_MAX: Final = 4_096
_LOCK: Final = "state.lock"
_NAME: Final = re.compile(rf"[a-z0-9_./-]{{1,{PIECE_NAME_CHARS_MAX}}}", re.ASCII)

Content: TypeAlias = tuple[str, bytes]
"""A piece's name and what it dumped."""


class StateFileError(Exception):
    """Bytes that are not what was written."""


class StateInUseError(Exception):
    """Another process has the folder."""


class When(msgspec.Struct, frozen=True):
    """Time when the folder was last known to be up to date (Unix time), and the boot of that life."""

    version: int
    wall_ms: int
    boot: int


@dataclass(frozen=True, slots=True)
class Found:
    """Contents of a folder."""

    pieces: Mapping[str, bytes]
    when: When | None
    """None where nothing was kept."""
    damaged: tuple[str, ...] = ()
    """Files that were set aside."""
    taken_over: Path | None = None
    """Whose folder this was before."""


def encode_piece(name: str, content: bytes) -> bytes:
    """Return the file of a piece."""
    body = msgspec.msgpack.encode((name, content))
    return _HEAD + _sum(body) + body


def decode_piece(file: bytes) -> Content:
    """Return what a file says; StateFileError for anything that `encode_piece` would not write."""
    body = file[len(_HEAD) + _SUM_BYTES :]
    if not file.startswith(_HEAD) or file[len(_HEAD) : len(_HEAD) + _SUM_BYTES] != _sum(body):
        raise StateFileError("cut off, changed, or of another version")
    try:
        return msgspec.msgpack.decode(body, type=tuple[str, bytes])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StateFileError(str(error)) from error


def decode_when(file: bytes) -> When:
    """Return what the file says; StateFileError for any bytes that do not."""
    try:
        when = msgspec.json.decode(file, type=When)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StateFileError(str(error)) from error
    if when.version != 1 or when.wall_ms < 0 or when.boot < 0:
        raise StateFileError("another version, or a time that never was")
    return when


def file_name(piece: str) -> str:
    """Return the name of a piece's file."""
    assert _NAME.fullmatch(piece), piece
    return piece.replace("/", "-") + _SUFFIX


class StateFolder:
    """One node's folder. `before` are folders of the same node under other circumstances."""

    def __init__(self, folder: Path, *, before: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._before = tuple(before)
        self._lock: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the folder is this process's."""
        return self._lock is not None

    def open(self) -> Found:
        """Take the folder and return what is in it. OSError; StateInUseError; then it is not taken."""
        assert self._lock is None
        taken_over = None if self.folder.exists() else self._take_over()
        if self._lock is None:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = lock_file(self.folder / _LOCK)
        if self._lock is None:
            raise StateInUseError(f"another node keeps its state in {self.folder}")
        try:
            return self._read(taken_over)
        except BaseException:
            self.close()
            raise

    def write(self, pieces: Sequence[Content], when: When) -> None:
        """Keep these, and that everything is up to date; a piece without content needs no file.

        OSError if that cannot be; each file is then the old or the new one, and `when` the old one.
        """
        for name, content in pieces:
            path = self.folder / file_name(name)
            if content:
                replace_file(path, encode_piece(name, content))
            else:
                path.unlink(missing_ok=True)
        if pieces:
            sync_folder(self.folder)
        # Last: it must not claim what is not there yet.
        replace_file(self.folder / _WHEN, msgspec.json.encode(when) + b"\n")
        sync_folder(self.folder)

    def set_aside(self, path: Path) -> None:
        """Let a file be read no more, but keep it."""
        os.replace(path, path.with_name(path.name + DAMAGED))

    def set_piece_aside(self, piece: str) -> None:
        """Let the file of that piece be read no more, but keep it."""
        self.set_aside(self.folder / file_name(piece))

    def close(self) -> None:
        """Give the folder to the next."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    # ── Reading ──────────────────────────────────────────────────────────────

    def _take_over(self) -> Path | None:
        for other in self._before:
            if not (other / _WHEN).exists():
                continue
            lock = lock_file(other / _LOCK)
            if lock is None:
                continue
            try:
                self.folder.parent.mkdir(parents=True, exist_ok=True)
                os.rename(other, self.folder)
            except BaseException:
                os.close(lock)
                raise
            self._lock = lock
            return other
        return None

    def _read(self, taken_over: Path | None) -> Found:
        pieces: dict[str, bytes] = {}
        damaged: list[str] = []
        newest_ms = 0
        for path in sorted(self.folder.glob("*" + _SUFFIX))[:PIECES_MAX]:
            newest_ms = max(newest_ms, path.stat().st_mtime_ns // 1_000_000)
            try:
                name, content = decode_piece(_bounded(path, FILE_BYTES_MAX))
                if _NAME.fullmatch(name) is None or file_name(name) != path.name:
                    raise StateFileError("the file of another piece")
            except StateFileError:
                self.set_aside(path)
                damaged.append(path.name)
            else:
                pieces[name] = content
        when = self._read_when(damaged)
        if when is None and (pieces or damaged):
            when = When(1, newest_ms, 0)
        return Found(pieces, when, tuple(damaged), taken_over)

    def _read_when(self, damaged: list[str]) -> When | None:
        path = self.folder / _WHEN
        try:
            return decode_when(_bounded(path, _WHEN_BYTES_MAX))
        except FileNotFoundError:
            return None
        except StateFileError:
            self.set_aside(path)
            damaged.append(path.name)
            return None


def _sum(body: bytes) -> bytes:
    return blake2b(body, digest_size=_SUM_BYTES).digest()


def _bounded(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise StateFileError(f"larger than {bytes_max} bytes")
    return content
