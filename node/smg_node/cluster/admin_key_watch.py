"""Admin key watch: takes the keys of the admin key file anew when it changes, and keeps the old ones while it is wrong.

Editors write a file in steps, and volumes of secrets change by exchanging a link: a file's time, size and inode, with
links followed, tell one version from the next, and one that will not do is complained of only if it stays so.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from smg_node.cluster.admin_key_file import FileKeys, read_admin_keys
from smg_node.config.schema.problems import ConfigurationError

LOOK_INTERVAL_S: Final = 0.5
"""A removed key is to be worthless within two seconds, and reading takes its time on some disks."""
_LOOKS_TO_RETRY: Final = 20
"""A refused file is tried again after so many looks: what was wrong may end without a change of it, such as a mode."""
_Stamp: TypeAlias = tuple[int, int, int] | None
_log: Final = logging.getLogger("smg_node.cluster")


class AdminKeyWatch:
    """Looks at the file again and again; `take` gets what it holds, and says whether that is anything new."""

    def __init__(
        self,
        path: Path,
        take: Callable[[FileKeys], bool],
        *,
        look_interval_s: float = LOOK_INTERVAL_S,
    ) -> None:
        self._path: Final = path
        self._take: Final = take
        self._interval_s: Final = look_interval_s
        self._stamp: _Stamp = None
        self._read = False
        self._complaint = ""
        self._said = ""
        self._warned: tuple[str, ...] | None = None
        self._looks_to_retry = 0

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._interval_s)

    async def look(self) -> None:
        """Take the keys of the file if it has changed and will do."""
        stamp = self._seen()
        changed = stamp != self._stamp or not self._read
        self._looks_to_retry -= 1
        if not changed and (not self._complaint or self._looks_to_retry > 0):
            return
        # What changes while it is read is seen as a change the next time.
        self._stamp, self._read = stamp, True
        try:
            file = await asyncio.to_thread(read_admin_keys, self._path)
        except ConfigurationError as error:
            self._refuse(error.problems[0].message, changed=changed)
            return
        self._complaint = self._said = ""
        # What was said at the start is not said again.
        if self._warned is not None and file.warnings != self._warned:
            for warning in file.warnings:
                _log.warning("%s", warning)
        self._warned = file.warnings
        if self._take(file):
            _log.info("took new admin keys from %s: %s", self._path, ", ".join(file.secrets))

    def _refuse(self, complaint: str, *, changed: bool) -> None:
        """Say what is wrong, once, if it is not over by the next look."""
        self._complaint = complaint
        self._looks_to_retry = 1 if changed else _LOOKS_TO_RETRY
        if not changed and self._said != complaint:
            self._said = complaint
            _log.warning("kept the old admin keys: %s", complaint)

    def _seen(self) -> _Stamp:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
