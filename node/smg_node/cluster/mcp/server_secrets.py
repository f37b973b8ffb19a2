"""Secrets of servers at the moment they are needed: values, or what a file or the environment of this node holds."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError

CODE: Final = "mcp_secret"
KEPT_S: Final = 5.0
"""So long is what a file holds believed; then it is read again, and a secret that was exchanged there is taken up."""
_FILE: Final = "file:"
_ENV: Final = "env:"
_BYTES_MAX: Final = 65_536
_FILES_MAX: Final = 1_000


def reference_of(spelled: str) -> str:
    """Return how a secret is shown: where it comes from, "" for a value."""
    return spelled if spelled.startswith((_FILE, _ENV)) else ""


class ServerSecrets:
    """Reader of secrets. `now_s` is any clock that does not go back."""

    def __init__(
        self, now_s: Callable[[], float], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._now_s = now_s
        self._environment = environment
        self._files: dict[str, tuple[float, str]] = {}

    def read(self, server: str, spelled: str) -> str:
        """Return a secret; UPSTREAM_FAILED `mcp_secret` that says which reference leads nowhere."""
        if spelled.startswith(_FILE):
            found = self._file(server, spelled.removeprefix(_FILE))
        elif spelled.startswith(_ENV):
            found = self._environment.get(spelled.removeprefix(_ENV), "").strip()
        else:
            return spelled
        if not found:
            raise _unread(server, f"{spelled} is empty or not set on this node")
        return found

    def _file(self, server: str, path: str) -> str:
        now_s = self._now_s()
        kept = self._files.get(path)
        if kept is not None and now_s < kept[0]:
            return kept[1]
        try:
            with Path(path).open("rb") as file:
                found = file.read(_BYTES_MAX).decode().strip()
        except OSError as error:
            why = (error.strerror or "it cannot be opened").lower()
            raise _unread(server, f"file:{path} cannot be read: {why}") from error
        except UnicodeDecodeError as error:
            raise _unread(server, f"file:{path} holds no text") from error
        if len(self._files) >= _FILES_MAX:
            self._files.clear()
        self._files[path] = (now_s + KEPT_S, found)
        return found


def _unread(server: str, why: str) -> SmgError:
    message = f"a secret of the server of tools {server}: {why}"
    return SmgError(ErrorKind.UPSTREAM_FAILED, message, code=CODE)
