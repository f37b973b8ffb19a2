"""Local sources of secrets: the files and the environment of this node."""

import os
from pathlib import Path
from typing import Final

_FILE_MAX_BYTES: Final = 262_144
"""Above any key; what is larger is the wrong file."""


class LocalSources:
    """Reads references of secrets where this node runs."""

    def file(self, path: str) -> str:
        """Return the beginning of a file as text; OSError or UnicodeDecodeError where it cannot be read."""
        with Path(path).open("rb") as opened:
            return opened.read(_FILE_MAX_BYTES).decode("utf-8")

    def env(self, name: str) -> str | None:
        """Return a variable of the environment, None where there is none."""
        return os.environ.get(name)
