"""Usage sender: carries a data process's usage to its control process, which counts and keeps it.

Requests are counted where they end; what has come together is sent a tenth of a second after the first of it. So a
process that dies takes no more than that with it. While there is no control process, rows grow, and wait.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.processes.reports.usage_messages import pack_used

EVERY_S: Final = 0.1


class UsageSender:
    """Sender of one data process. `usage` is its book, which is empty again after each sending."""

    def __init__(self, usage: UsageBook, *, every_s: float = EVERY_S) -> None:
        self._usage: Final = usage
        self._every_s: Final = every_s
        self._tell: Callable[[bytes], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        usage.tell(self._soon)

    def link(self, tell: Callable[[bytes], None]) -> None:
        """Send to this control process from now on, beginning with what waits."""
        self._tell = tell
        self.send()

    def cut(self) -> None:
        """Keep rows until there is a link again."""
        self._tell = None

    def send(self) -> None:
        """Send what there is, now: also before this process ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._tell is None:
            return
        lines = self._usage.drain()
        if lines:
            self._tell(pack_used(lines))

    def _soon(self) -> None:
        if self._tell is not None and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._every_s, self.send)
