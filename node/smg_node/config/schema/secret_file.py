"""Secret file: the value of a knob in a file of its own, read once at start, and what an operator should know of it.

The content is in no message.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BYTES_MAX: Final = 65_536
_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True)
class SecretFile:
    """Content of a file without the newline at its end, and a warning, "" for none."""

    text: str
    warning: str

    def __repr__(self) -> str:
        return "SecretFile(…)"

    def lines(self) -> list[str]:
        """Return the lines that say something: not the empty ones and not those that begin with #."""
        stripped = (line.strip() for line in self.text.split("\n"))
        return [line for line in stripped if line and not line.startswith("#")]


def read_secret_file(path: Path) -> SecretFile:
    """Return what a file holds; ValueError, in an operator's words, for one that is missing, empty, too large or no text.

    One newline at its end is not part of the secret: editors and shells put it there.
    """
    path = path.expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise ValueError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if len(content) > BYTES_MAX:
        raise ValueError(f"{path} is larger than {BYTES_MAX} bytes, this is no secret")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None
    text = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    if not text:
        raise ValueError(f"{path} is empty")
    return SecretFile(text, _warning(path, mode))


def _warning(path: Path, mode: int) -> str:
    if stat.S_ISREG(mode) and mode & _OTHERS:
        return f"others on this machine may use {path} (mode {stat.S_IMODE(mode):04o}); chmod 600"
    return ""
