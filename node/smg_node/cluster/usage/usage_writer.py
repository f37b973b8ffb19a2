"""Usage writer: saves usage every few seconds while any comes, and once more at shutdown.

An idle node does not wake up. A disk that fails is logged once, and tried again until it works;
until then everything stays in memory, for two days.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import HOUR_MS, Line
from smg_node.cluster.usage.disk_thread import DiskThread
from smg_node.cluster.usage.usage_log import UsageLog

WRITE_EVERY_S: Final = 2.0
"""What a machine that loses its power forgets at most."""
RETRY_S: Final = 10.0
READ_S: Final = 4.0
"""For a month of files; whoever asks from another node waits a little longer."""
CLOSE_S: Final = 5.0
"""So long a node that ends waits for its disk."""

T = TypeVar("T")
_log: Final = logging.getLogger("smg_node.cluster")


class UsageKeeper:
    """Writes what `usage` counts to `log`, and reads it again."""

    def __init__(
        self,
        usage: UsageBook,
        log: UsageLog,
        *,
        now_ms: Callable[[], int],
        write_every_s: float = WRITE_EVERY_S,
        retry_s: float = RETRY_S,
        read_s: float = READ_S,
    ) -> None:
        self.failures = 0
        """Times that it could not be written."""
        self._usage: Final = usage
        self._file: Final = log
        self._now_ms: Final = now_ms
        self._write_every_s: Final = write_every_s
        self._retry_s: Final = retry_s
        self._read_s: Final = read_s
        self._more: Final = asyncio.Event()
        self._turn: Final = asyncio.Lock()
        self._thread: Final = DiskThread("usage")
        self._closed = False
        self._warned = False
        self._tidied = -1
        usage.tell(self._more.set)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            await asyncio.sleep(self._write_every_s)
            if not await self.write():
                self._more.set()
                await asyncio.sleep(self._retry_s)

    async def write(self) -> bool:
        """Write what is not written yet; whether that went well."""
        async with self._turn:
            lines = self._usage.unwritten()
            try:
                if lines:
                    await self._call(lambda: self._file.append(lines))
                    self._usage.written(lines)
                await self._tidy()
            except OSError as error:
                self._failed(error)
                return False
            if self._warned:
                self._warned = False
                _log.warning("what requests used is written again", extra=_event("usage_written"))
            return True

    async def read(self, first: int, end: int) -> Sequence[Line]:
        """Return what is on the disk of the hours from `first` to before `end`; OSError if it cannot be read."""
        try:
            async with asyncio.timeout(self._read_s):
                return await self._call(lambda: self._file.read(first, end))
        except TimeoutError:
            raise OSError("the disk does not answer") from None

    async def close(self) -> None:
        """Write what is left, as far as the disk allows within a few seconds."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.write()
                await self._call(self._file.close)
        except TimeoutError:
            _log.warning(
                "the disk did not take what requests used last", extra=_event("usage_failed")
            )
        finally:
            self._closed = True
            self._thread.end()

    async def _tidy(self) -> None:
        """Once a day, remove the files that are too old."""
        today = self._now_ms() // (24 * HOUR_MS)
        if today != self._tidied:
            await self._call(lambda: self._file.forget(today))
            self._tidied = today

    async def _call(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise OSError("this node ends")
        return await self._thread.call(work)

    def _failed(self, error: OSError) -> None:
        self.failures += 1
        if self._warned:
            return
        self._warned = True
        reason = (error.strerror or str(error)).lower()
        if isinstance(error, BlockingIOError):
            reason = "another process of this name writes there"
        _log.warning(
            "what requests used cannot be written (%s): kept in memory, and tried again",
            reason,
            extra=_event("usage_failed"),
        )


def _event(name: str) -> dict[str, dict[str, str]]:
    return {"fields": {"event": name}}
