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
_FILE_MAX_BYTES: Final = 256 << 20
_LEVEL: Final = 1
_STARTED: Final = "started"
"""Touched at each start: what is older was not used since."""
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
        """Drop what was not used since the start before this one; call it once a start, before there are others."""
        try:
            started_s = (self._folder / _STARTED).stat().st_mtime
        except OSError:
            started_s = 0.0
        try:
            for path in self._paths():
                if path.stat().st_mtime < started_s:
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
        """Return the files that were noted under `key`; None for what is not there, not whole, or not those files."""
        try:
            with open(self._folder / key, "rb") as file:
                written = file.read(NOTE_MAX_BYTES + 1)
            note = _READER.decode(written)
            files = {name: _unpacked(content) for name, content in note.files.items()}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, zlib.error):
            return None
        bundle = TokenizerBundle(files, note.digest, note.origin)
        return bundle if proof_key(bundle) == key else None

    def _write(self, path: Path, bundle: TokenizerBundle) -> bool:
        packed = {name: zlib.compress(content, _LEVEL) for name, content in bundle.files.items()}
        written = _WRITER.encode(_Note(bundle.digest, bundle.origin, packed))
        if len(written) > NOTE_MAX_BYTES:
            return False
        fresh = path.with_suffix(f".{os.getpid()}.new")
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


def _unpacked(content: bytes) -> bytes:
    """Return what was compressed; zlib.error for what is not whole, or larger than any tokenizer file."""
    machine = zlib.decompressobj()
    unpacked = machine.decompress(content, _FILE_MAX_BYTES)
    if not machine.eof:
        raise zlib.error("not whole, or too large")
    return unpacked
