"""Admin key file of an operator: admin keys that hold on the nodes that have the file.

One key a line, `smg-ID-SECRET`; empty lines and what follows a `#` are ignored. The file is read at start and whenever
it changes (`admin_key_watch`), and never written. Keys of a file cannot be revoked from afar: take the line away.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smg_node.access.api_key import read_key_text
from smg_node.config.schema.problems import ConfigurationError, Problem

KEYS_MAX: Final = 8
_FILE_BYTES_MAX: Final = 65_536
_KNOB: Final = "auth.admin_key_file"


@dataclass(frozen=True, slots=True)
class FileKeys:
    """Contents of a key file: secrets by id, and what an operator should know of the file."""

    secrets: dict[str, str]
    warnings: tuple[str, ...] = ()
    path: Path | None = None
    """Where it is, to be looked at again."""

    def __repr__(self) -> str:
        return f"FileKeys({', '.join(self.secrets)})"


def read_admin_keys(path: Path) -> FileKeys:
    """Return 1 to 8 keys; ConfigurationError that names knob, file and line, and never a key, for anything else."""
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise _refused(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    if len(content) > _FILE_BYTES_MAX:
        raise _refused(f"{path} is larger than {_FILE_BYTES_MAX} bytes, this is no key file")
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise _refused(f"{path} is no text, and so no key file") from None
    return FileKeys(_parse(path, lines), _warnings(path, mode), path)


def _parse(path: Path, lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        said = read_key_text(text)
        if said is None:
            raise _refused(
                f"{path}, line {number}: not a key smg-ID-SECRET with a secret of 32 characters or"
                " more (smg-admin keys generate makes one)"
            )
        if said[0] in found:
            raise _refused(f"{path}, line {number}: the id {said[0]} again")
        found[said[0]] = said[1]
    if not 1 <= len(found) <= KEYS_MAX:
        raise _refused(f"{path} has {len(found)} keys, where 1 to {KEYS_MAX} may be")
    return found


def _warnings(path: Path, mode: int) -> tuple[str, ...]:
    if stat.S_ISREG(mode) and mode & 0o077:
        octal = f"{stat.S_IMODE(mode):04o}"
        return (f"{path}: others on this machine may use it (mode {octal}); chmod 600",)
    return ()


def _refused(message: str) -> ConfigurationError:
    return ConfigurationError([Problem(_KNOB, message)])
