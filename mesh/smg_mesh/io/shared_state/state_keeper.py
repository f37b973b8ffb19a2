"""State keeper: gathers changes of replicated state, writes them in a
thread, and reads them at start.

    changed(name) ──▶ a second to gather ──▶ dump, 16 at a time ──▶ files, in a thread ──▶ `when.json`

A piece is on disk at most `save_apart_ms` after it changed, and the disk is left alone as long between two
saves. Nothing here stops a node: a disk that is full, slow, read-only, missing or another node's costs what
a restart would remember. That is reported once, counted each time, and tried again, later and later.

A folder that could not be read at the start is read when it can be, and what it holds is merged then,
unless it is so old that what it holds may have been removed elsewhere meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from smg_mesh.io.blocking_threads import Threads, ThreadsBusyError
from smg_mesh.io.counters import Counters
from smg_mesh.io.shared_state.state_files import Content, Found, StateFolder, StateInUseError, When
from smg_mesh.sync.exchange.piece_interface import PieceError

GATHER_S: Final = 1.0
"""After a change in the quiet: what is changed by one command often changes in several pieces."""
WHEN_S: Final = 3_600.0
"""Nothing changes, and yet this node is here: an hour more or less does not matter beside the week for
which removals are remembered, and a disk that sleeps may go on sleeping."""
PIECES_AT_ONCE: Final = 16
"""Held twice in memory while they are written, 256 KiB each."""
SAVE_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 2.0
"""A node that stops does not wait longer for a disk that hangs."""
RETRY_MAX_S: Final = 300.0
"""A disk that is still full after an hour need not be asked each ten seconds."""

_DISK_ERRORS: Final = (OSError, StateInUseError, TimeoutError, ThreadsBusyError)

_log: Final = logging.getLogger("smg_mesh.keep")


class Keepable(Protocol):
    """State that is kept; `replica.Replica` fits. Only ever called in the loop's thread."""

    def dump(self, name: str) -> bytes:
        """Return what is kept of a piece, b"" if it is empty."""
        ...

    def load(self, name: str, content: bytes) -> None:
        """Take in what an earlier life kept; PieceError if it makes no sense."""
        ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """State that an earlier life left."""

    pieces: int
    absent_ms: int | None
    """Since that life was last seen here; None if there was none."""


class Keeper:
    """Keeps pieces in `folder`; without one every method does nothing, and costs nothing."""

    def __init__(
        self,
        folder: Path | None,
        *,
        pieces: Keepable,
        before: Sequence[Path] = (),
        save_apart_ms: int,
        absent_max_ms: int,
        counters: Counters,
        wall_ms: Callable[[], int],
    ) -> None:
        self._folder = StateFolder(folder, before=before) if folder is not None else None
        self._pieces: Final = pieces
        self._apart_s: Final = save_apart_ms / 1000
        self._absent_max_ms: Final = absent_max_ms
        self._counters: Final = counters
        self._wall_ms: Final = wall_ms
        # One: a write that hangs and comes back late must not undo a newer one.
        self._threads: Final = Threads("state", threads_max=1)
        self._changed: dict[str, None] = {}
        self._wake: Final = asyncio.Event()
        self._writing: asyncio.Future[None] | None = None
        self._boot = 0
        self._loading = False
        self._warned = False
        self._failures = 0
        self._began = False
        self._closed = False

    def changed(self, name: str) -> None:
        """Write that piece soon."""
        if self._folder is None or self._loading:
            return
        self._changed[name] = None
        self._wake.set()

    @property
    def waiting(self) -> int:
        """How many pieces are not on disk as they are now."""
        return len(self._changed)

    # ── The start ────────────────────────────────────────────────────────────

    async def open(self, begin: Callable[[int], int]) -> Recalled:
        """Load what an earlier life kept, and return how much and how old that was.

        Before anything is loaded, `begin` gets the boot of that life (0 if there was none) and returns
        the boot of this one.
        """
        self._began = True
        found = Found({}, None)
        if self._folder is not None:
            try:
                found = await self._opened(self._folder)
            except _DISK_ERRORS as error:
                self._failed("cannot be read", error)
        self._boot = begin(0 if found.when is None else found.when.boot)
        return await self._take(found)

    def change_boot(self, boot: int) -> None:
        """Write as that life from now on."""
        self._boot = boot

    async def _opened(self, folder: StateFolder) -> Found:
        """Take the folder; a thread that comes back too late gives it back."""
        opening = self._threads.start(folder.open)
        try:
            async with asyncio.timeout(SAVE_TIMEOUT_S):
                return await asyncio.shield(opening)
        except BaseException:
            opening.add_done_callback(lambda late: _give_back(folder, late))
            raise

    async def _take(self, found: Found) -> Recalled:
        for name in found.damaged:
            self._damaged(name, "is damaged")
        if found.taken_over is not None:
            _log.info("the state in %s is this node's from now on", found.taken_over)
        loaded = 0
        for name, content in found.pieces.items():
            loaded += await self._load(name, content)
            await asyncio.sleep(0)  # each may take milliseconds, and others wait
        if found.when is None:
            return Recalled(loaded, None)
        absent_ms = max(0, self._wall_ms() - found.when.wall_ms)
        return Recalled(loaded, absent_ms)

    async def _load(self, name: str, content: bytes) -> bool:
        self._loading = True
        try:
            self._pieces.load(name, content)
        except Exception as error:
            # A door: whatever an earlier life left, this one begins.
            if isinstance(error, PieceError) and error.reason == "name":
                # Of a later version, perhaps: what it keeps is none of ours to judge.
                _log.warning("the kept piece %r is unknown to this version, left as it is", name)
                return False
            self._damaged(name, f"cannot be loaded ({error})")
            await self._set_aside(name)
            return False
        finally:
            self._loading = False
        return True

    async def _set_aside(self, name: str) -> None:
        folder = self._folder
        assert folder is not None
        with suppress(*_DISK_ERRORS):  # it will be overwritten, then
            await self._threads.call(lambda: folder.set_piece_aside(name), timeout_s=SAVE_TIMEOUT_S)

    def _damaged(self, name: str, why: str) -> None:
        self._counters.add("state_file", "damaged")
        _log.error(
            "%s: what was kept of the shared state %s; it is set aside, the others may know it",
            name,
            why,
            extra={"fields": {"event": "state_damaged", "file": name}},
        )

    # ── Saving ───────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Save after changes until cancelled."""
        if self._folder is None:
            return
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(WHEN_S):
                    await self._wake.wait()
            if self._wake.is_set():
                await asyncio.sleep(min(GATHER_S, self._apart_s))
            self._wake.clear()
            await self._save(SAVE_TIMEOUT_S)
            await asyncio.sleep(self._pause_s())

    def _pause_s(self) -> float:
        if not self._failures:
            return max(0.0, self._apart_s - GATHER_S)
        return float(min(RETRY_MAX_S, self._apart_s * 2 ** min(self._failures - 1, 16)))

    async def close(self) -> None:
        """Save what was not, and give the folder back. Safe to call twice, and if it was never opened."""
        folder = self._folder
        if folder is None or self._closed or not self._began:
            return
        self._closed = True
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=CLOSE_TIMEOUT_S)
        await self._save(CLOSE_TIMEOUT_S)
        if (
            not self._threads.running
        ):  # else a thread still writes there, and the end of the process unlocks
            folder.close()

    async def _save(self, timeout_s: float) -> None:
        folder = self._folder
        assert folder is not None
        names: list[str] = []
        try:
            async with asyncio.timeout(timeout_s):
                if not folder.is_open:
                    await self._take_late(folder)
                # What changes meanwhile is gathered for the next time.
                waiting = list(self._changed)
                for begin in range(0, max(1, len(waiting)), PIECES_AT_ONCE):
                    names = waiting[begin : begin + PIECES_AT_ONCE]
                    await self._write(folder, names)
        except BaseException as error:
            # Cancelled or failed: what may not be there is written again.
            self._changed.update(dict.fromkeys(names))
            self._wake.set()
            if not isinstance(error, _DISK_ERRORS):
                raise
            self._failed("cannot be written", error)
        else:
            self._counters.add("state_file", "saved")
            self._warned = False
            self._failures = 0

    async def _write(self, folder: StateFolder, names: Sequence[str]) -> None:
        contents: list[Content] = []
        for name in names:
            self._changed.pop(name, None)
            contents += self._dumped(name)
            await asyncio.sleep(0)
        when = When(1, self._wall_ms(), self._boot)
        writing = self._threads.start(lambda: folder.write(contents, when))
        writing.add_done_callback(_look_at)
        self._writing = writing
        await asyncio.shield(writing)

    def _dumped(self, name: str) -> list[Content]:
        try:
            return [(name, self._pieces.dump(name))]
        except Exception:
            # A door: a mistake of ours about one piece must not keep the others from the disk.
            self._counters.add("state_fault")
            _log.exception("the piece %s of shared state cannot be written down", name)
            return []

    async def _take_late(self, folder: StateFolder) -> None:
        """Take a folder that could not be had at the start, with what is in it."""
        found = await self._opened(folder)
        when = found.when
        if when is not None and self._wall_ms() - when.wall_ms > self._absent_max_ms:
            _log.warning("the state in %s is too old to be believed now", folder.folder)
            found = Found({}, when, found.damaged, found.taken_over)
        recalled = await self._take(found)
        # Here and there may differ now.
        self._changed.update(dict.fromkeys(found.pieces))
        _log.info("the state in %s was read after all: %d pieces", folder.folder, recalled.pieces)

    def _failed(self, what: str, error: Exception) -> None:
        self._failures += 1
        self._counters.add("state_file", "failed")
        if self._warned:
            return
        self._warned = True
        assert self._folder is not None
        reason = str(error) or type(error).__name__
        _log.warning(
            "the shared state in %s %s, going on without: a restart would not remember it: %s",
            self._folder.folder,
            what,
            reason,
            extra={"fields": {"event": "state_unsaved"}},
        )

    def counts(self) -> Mapping[str, int]:
        """Return what a gauge may show."""
        return {"waiting": len(self._changed), "failures": self._failures}


def _look_at(writing: asyncio.Future[None]) -> None:
    """See how a write ended that nothing waits for any more."""
    if not writing.cancelled():
        writing.exception()


def _give_back(folder: StateFolder, opening: asyncio.Future[Found]) -> None:
    """Close a folder that was opened when nothing waited any more: the next save takes it again."""
    if not opening.cancelled() and opening.exception() is None:
        folder.close()
