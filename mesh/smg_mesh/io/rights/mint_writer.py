"""Mint writer: writes what votes wait for, in a thread: writes that
came together are synced together.

A disk that fails is reported once.

Nothing here fails and nothing waits for it: what cannot be written is dropped, and what waits for
it is never said. The node that wanted the vote asks again.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from smg_mesh.escrow.messages.effects import KeepFounding, KeepRoster, Persist
from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.escrow.permits.permit_loans import LENT, WHOLE_KEY
from smg_mesh.io.blocking_threads import Threads, ThreadsBusyError
from smg_mesh.io.counters import Counters
from smg_mesh.io.rights.mint_log import Line, MintLog, Recalled

APART_S: Final = 0.05
"""Between two writes: twenty a second, each for all that came meanwhile. Half of the 100 ms a vote may wait."""
OPEN_TIMEOUT_S: Final = 10.0
WRITE_TIMEOUT_S: Final = 2.0
"""A vote that is later than this is of no use to anybody."""
WAITING_MAX: Final = 1_000
"""Of packets with up to 50 rows each."""
LEVEL_KEPT_MS: Final = 86_400_000
"""What is no window of time is remembered for a day."""
FOR_GOOD_MS: Final = 1 << 62
"""What was lent is remembered until it is back."""
KEPT_MS: Final = 60_000
"""After a window and the one after it, for clocks that differ."""

Wish: TypeAlias = Persist | KeepRoster | KeepFounding

_DISK_ERRORS: Final = (OSError, TimeoutError, ThreadsBusyError)
_log: Final = logging.getLogger("smg_mesh.rights")


class MintWriter:
    """Writer of one node; without a folder everything is `written` at
    once, and nothing is remembered.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        counters: Counters,
        wall_ms: Callable[[], int],
        written: Callable[[int], None],
    ) -> None:
        self._log: Final = None if folder is None else MintLog(folder)
        self._counters: Final = counters
        self._wall_ms: Final = wall_ms
        self._written: Final = written
        self._threads: Final = Threads("rights", threads_max=2)
        self._open = False
        self._waiting: list[Wish] = []
        self._more: Final = asyncio.Event()
        self._warned = False

    async def open(self) -> Recalled:
        """Return what an earlier life left; what cannot be read is reported, and not remembered."""
        log = self._log
        if log is None:
            return Recalled(None, None)
        wall_ms = self._wall_ms()
        try:
            recalled = await self._threads.call(
                lambda: log.open(wall_ms=wall_ms), timeout_s=OPEN_TIMEOUT_S
            )
        except _DISK_ERRORS as error:
            self._failed("cannot be read", error)
            return Recalled(None, None)
        if recalled.damage:
            self._counters.add("rights_file", "damaged")
            _log.warning("%s", recalled.damage, extra={"fields": {"event": "rights_file_damaged"}})
        return recalled

    def write(self, wish: Wish) -> None:
        """Write it soon, and say so; or never, if it cannot be."""
        if len(self._waiting) >= WAITING_MAX:
            self._counters.add("rights_file", "dropped")
            return
        self._waiting.append(wish)
        self._more.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            wishes, self._waiting = self._waiting, []
            if await self._all_written(wishes):
                for wish in wishes:
                    self._written(wish.token)
            if self._log is not None:
                await asyncio.sleep(APART_S)

    async def close(self) -> None:
        """Let go of the file."""
        if self._log is None:
            return
        try:
            await self._threads.call(self._log.close, timeout_s=WRITE_TIMEOUT_S)
        except _DISK_ERRORS as error:
            self._failed("cannot be closed", error)

    async def _all_written(self, wishes: Sequence[Wish]) -> bool:
        log = self._log
        if log is None:
            return True
        wall_ms = self._wall_ms()
        lines = [
            Line(row.key, row.window, row.total, kept_until_ms(row, wall_ms))
            for wish in wishes
            if isinstance(wish, Persist)
            for row in wish.rows
        ]
        kept = [wish for wish in wishes if not isinstance(wish, Persist)]
        try:
            await self._threads.call(
                lambda: _write(log, lines, kept, wall_ms), timeout_s=WRITE_TIMEOUT_S
            )
        except _DISK_ERRORS as error:
            self._failed("cannot be written, so this node does not vote on what is to be", error)
            return False
        self._warned = False
        self._counters.add("rights_file", "saved")
        return True

    def _failed(self, what: str, error: Exception) -> None:
        self._counters.add("rights_file", "failed")
        if self._warned:
            return
        self._warned = True
        reason = str(error) or type(error).__name__
        _log.warning(
            "the record of what was minted %s: %s",
            what,
            reason,
            extra={"fields": {"event": "rights_file_failed"}},
        )


def kept_until_ms(row: Minted, wall_ms: int) -> int:
    """Return until when a row may be of interest; its key ends with the length of its windows."""
    if row.key == WHOLE_KEY or (row.key.startswith(LENT) and row.total):
        return FOR_GOOD_MS
    length = row.key.partition("\x1f")[0].rpartition("/")[2]
    window_ms = int(length) if length.isascii() and length.isdigit() else 0
    if window_ms == 0 or "\x1f" in row.key:
        return wall_ms + LEVEL_KEPT_MS
    return (row.window + 2) * window_ms + KEPT_MS


def _write(
    log: MintLog, lines: Sequence[Line], kept: Sequence[KeepRoster | KeepFounding], wall_ms: int
) -> None:
    """Rows first: they may say that what lies beside a new roster is not all there was."""
    if lines:
        log.append(lines, wall_ms=wall_ms)
    foundings = [wish.state for wish in kept if isinstance(wish, KeepFounding)]
    rosters = [wish.roster for wish in kept if isinstance(wish, KeepRoster)]
    for state in foundings[-1:]:
        log.keep_founding(state)
    for roster in rosters[-1:]:
        log.keep_roster(roster)
