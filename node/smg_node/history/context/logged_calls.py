"""Logged calls: which calls of one answer are in its event log, so that their runs may begin.

    the loop: RunStart ──▶ the log: said ──▶ written ──▶ `passed`: a first byte leaves

Arguments that are whole in a log stand for a run that may have happened, and those that are not for one that has not.
Whoever ends the answer of a dead node can tell the truth by that alone. An answer without a log has no other to end it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from smg_node.core.generation.events import Event, RunStart


class LoggedCalls:
    """Gate of one answer; see `core.ports.SendGate`. It is open until it is told of a log."""

    def __init__(self) -> None:
        self._kept: Callable[[], Awaitable[bool]] | None = None
        self._heard: set[int] = set()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._closed = False

    def wait_for(self, kept: Callable[[], Awaitable[bool]]) -> None:
        """Take how it is waited for that all that was said is in the log."""
        self._kept = kept

    @property
    def waits(self) -> bool:
        """Whether there is a log."""
        return self._kept is not None

    def heard(self, events: Sequence[Event]) -> None:
        """Take note of events whose own ones were said to the log."""
        for event in events:
            if type(event) is RunStart:
                self._heard.add(event.block)
                waiting = self._waiting.pop(event.block, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(None)

    async def passed(self, block: int) -> bool:
        """Return when the call in this block is in the log; false where it never will be."""
        kept = self._kept
        if kept is None:
            return not self._closed
        if block not in self._heard:
            self._waiting[block] = waiting = asyncio.get_running_loop().create_future()
            await waiting
        return not self._closed and await kept()

    def close(self) -> None:
        """Let nothing pass any more: the answer is over, or another node ends it."""
        self._closed = True
        self._kept = None
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()
