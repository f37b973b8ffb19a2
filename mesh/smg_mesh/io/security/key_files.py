"""Key files: the operator's keys, and where the result of a rotation is kept.

The operator's key file has one key per line, base64 or hexadecimal, the primary first; empty lines and
what follows a `#` are ignored. It is only ever read. What a rotation makes of it is kept beside the
node's other memories, together with a hash of the file it began from: as soon as the operator's file says
something else, that wins and the rotation is forgotten.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from smg_mesh.io.atomic_files import write_durably
from smg_mesh.io.security.ring_key import RingKey, parse_key

KEYS_MAX: Final = 8
_FILE_BYTES_MAX: Final = 65_536
_ROTATED: Final = "keyring"


class KeyFileError(Exception):
    """A key file that cannot be used; the message names the file, the line, and never a key."""


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Contents of an operator's key file."""

    keys: tuple[RingKey, ...]
    """The primary first."""
    digest: str
    """Hash of its content."""
    warnings: tuple[str, ...]


class _Rotated(msgspec.Struct):
    version: int
    began_from: str
    keys: list[str]


def read_key_file(path: Path) -> KeyFile:
    """Return 1 to 8 different keys; `KeyFileError` for anything else."""
    content, mode = _read(path)
    return KeyFile(
        keys=_parse(path, content),
        digest=blake2b(content, digest_size=16).hexdigest(),
        warnings=_warnings(path, mode),
    )


def read_rotated(folder: Path, *, began_from: str) -> tuple[tuple[RingKey, ...], str]:
    """Return the keys that a rotation left, if it began from that key file, and a warning or nothing.

    No keys: there was no rotation, it began from another file, or what was kept is damaged.
    """
    path = folder / _ROTATED
    try:
        content, _ = _read(path, missing=b"")
        if not content:
            return (), ""
        rotated = msgspec.json.decode(content, type=_Rotated)
        keys = tuple(map(parse_key, rotated.keys))
    except (KeyFileError, ValueError, RecursionError) as error:
        return (), f"{path}: the rotation of the keyring is lost, the key file counts: {error}"
    different = len({key.id for key in keys})
    if rotated.version != 1 or not 1 <= len(keys) <= KEYS_MAX or different != len(keys):
        return (), f"{path}: no rotation that this version can read, the key file counts"
    if rotated.began_from != began_from:
        return (), ""
    return keys, ""


def write_rotated(folder: Path, keys: Sequence[RingKey], *, began_from: str) -> None:
    """Keep what a rotation made; OSError leaves what was kept before."""
    rotated = _Rotated(1, began_from, [key.secret.hex() for key in keys])
    content = msgspec.json.format(msgspec.json.encode(rotated), indent=1) + b"\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / _ROTATED, content)


def _read(path: Path, *, missing: bytes | None = None) -> tuple[bytes, int]:
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
            mode = os.fstat(file.fileno()).st_mode
    except FileNotFoundError as error:
        if missing is None:
            raise KeyFileError(f"{path}: {error.strerror}") from error
        return missing, 0
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from error
    if len(content) > _FILE_BYTES_MAX:
        raise KeyFileError(f"{path}: larger than {_FILE_BYTES_MAX} bytes, this is no key file")
    return content, mode


def _parse(path: Path, content: bytes) -> tuple[RingKey, ...]:
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise KeyFileError(f"{path}: no text, and so no key file") from error
    found: dict[bytes, int] = {}
    keys = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            key = parse_key(text)
        except ValueError as error:
            raise KeyFileError(f"{path}, line {number}: {error}") from error
        if key.id in found:
            raise KeyFileError(f"{path}, line {number}: the key of line {found[key.id]} again")
        found[key.id] = number
        keys.append(key)
    if not 1 <= len(keys) <= KEYS_MAX:
        raise KeyFileError(f"{path}: {len(keys)} keys, where 1 to {KEYS_MAX} may be")
    return tuple(keys)


def _warnings(path: Path, mode: int) -> tuple[str, ...]:
    if stat.S_ISREG(mode) and mode & 0o077:
        octal = f"{stat.S_IMODE(mode):04o}"
        return (f"{path}: others on this machine may use it (mode {octal}); chmod 600",)
    return ()
