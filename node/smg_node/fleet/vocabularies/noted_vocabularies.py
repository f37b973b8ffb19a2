"""Noted vocabularies: the tokenizer files that a node of several processes needs, packed, in its data dir.

A data process that needs a large vocabulary notes its files; the template process reads all that are noted, and data
processes are forked from it. A note is named by the sum of the files and of the libraries' versions (`proof_key`), so
a note of other files or another release is never taken for this one. Files are written beside and renamed. At a start of the
node, notes that its last run did not use are dropped, so what is read before there is a request is what was needed.
"""

import logging
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.files.verification_proof import proof_key

NOTED_MAX: Final = 4
"""The newest stay. Each is 80 MB of the template process for a vocabulary of 150,000."""
NOTE_MAX_BYTES: Final = 64 << 20
_FILES_MAX_BYTES: Final = 256 << 20
"""All files of a note, unpacked."""
_LEVEL: Final = 1
_STARTED: Final = "started"
"""Touched at each start: what is older was not used since."""
_FRESH: Final = ".new"
"""Ends the names of notes that are being written."""
_KEY_LENGTH: Final = 64

_log = logging.getLogger("smg_node.fleet")


class _Note(msgspec.Struct, frozen=True):
    digest: str
    origin: str
    files: Mapping[str, bytes]
    """Compressed."""


_WRITER: Final = msgspec.msgpack.Encoder()
_READER: Final = msgspec.msgpack.Decoder(_Note)


class NotedVocabularies:
    """Notes under one folder, shared by the processes of a node; a disk that refuses is logged, not raised."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder

    def begin(self) -> None:
        """Drop what was not used since the start before this one, and what nobody finished writing.

        Call it once a start, when no other node can have the folder and before there are other processes.
        """
        try:
            started_s = (self._folder / _STARTED).stat().st_mtime
        except OSError:
            started_s = 0.0
        try:
            for path in self._paths():
                if path.stat().st_mtime < started_s:
                    path.unlink(missing_ok=True)
            for path in self._folder.glob("*" + _FRESH):
                path.unlink(missing_ok=True)
            if self._folder.is_dir():
                (self._folder / _STARTED).touch()
        except OSError as error:
            _log.warning("the notes in %s cannot be tidied: %s", self._folder, error.strerror)

    def names(self) -> frozenset[str]:
        """Return the keys of all that are noted."""
        return frozenset(path.name for path in self._paths())

    def note(self, key: str, bundle: TokenizerBundle) -> bool:
        """Note `bundle`, whose `proof_key` is `key`, as needed now; return whether that can be read by others."""
        path = self._folder / key
        try:
            os.utime(path)
        except FileNotFoundError:
            return self._write(path, bundle)
        except OSError as error:
            _log.warning("a note of a vocabulary cannot be kept: %s", error)
            return False
        return True

    def read(self, key: str) -> TokenizerBundle | None:
        """Return the files that were noted under `key`; None for what is not there, not whole, or not those files.

        What is there and of no use is dropped, so that whoever needs it notes it anew.
        """
        path = self._folder / key
        try:
            with open(path, "rb") as file:
                written = file.read(NOTE_MAX_BYTES + 1)
        except OSError:
            return None
        bundle = _bundle(written)
        if bundle is not None and proof_key(bundle) == key:
            return bundle
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None

    def _write(self, path: Path, bundle: TokenizerBundle) -> bool:
        if sum(len(content) for content in bundle.files.values()) > _FILES_MAX_BYTES:
            return False
        packed = {name: zlib.compress(content, _LEVEL) for name, content in bundle.files.items()}
        written = _WRITER.encode(_Note(bundle.digest, bundle.origin, packed))
        if len(written) > NOTE_MAX_BYTES:
            return False
        fresh = path.with_suffix(f".{os.getpid()}{_FRESH}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.write_bytes(written)
            fresh.replace(path)
            self._forget_oldest()
        except OSError as error:
            _log.warning("a vocabulary cannot be noted: %s", error)
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            return False
        return True

    def _forget_oldest(self) -> None:
        found = [(path.stat().st_mtime, path) for path in self._paths()]
        for _, path in sorted(found, reverse=True)[NOTED_MAX:]:
            path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if len(path.name) == _KEY_LENGTH]
        except OSError:
            return []


def _bundle(written: bytes) -> TokenizerBundle | None:
    """Return the files of a note; None for anything else."""
    try:
        note = _READER.decode(written)
        files: dict[str, bytes] = {}
        left = _FILES_MAX_BYTES
        for name, content in note.files.items():
            files[name] = _unpacked(content, left)
            left -= len(files[name])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, zlib.error):
        return None
    return TokenizerBundle(files, note.digest, note.origin)


def _unpacked(content: bytes, max_bytes: int) -> bytes:
    """Return what was compressed; zlib.error for what is not whole, or larger than that."""
    machine = zlib.decompressobj()
    # Without limit is what a limit of 0 would mean to it.
    unpacked = machine.decompress(content, max(1, max_bytes))
    if not machine.eof:
        raise zlib.error("not whole, or too large")
    return unpacked
