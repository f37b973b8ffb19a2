"""Spool: ordered queue of turns on this node's disk while the store is unavailable.

The index in memory has no documents, but the thread of each turn and every id that it writes, so
that no client gets "not found" for what is only waiting. Turns of one thread are written one after
the other, threads in parallel. Turns of earlier processes are taken over when the node starts, in
the order of the processes.
"""

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from smg_node.history.spool import dead_letters as dead
from smg_node.history.spool import spool_format
from smg_node.history.spool.spool_folder import Place, SpoolFolder
from smg_node.history.spool.spool_format import SpooledTurn
from smg_node.history.spool.spool_thread import SpoolThread
from smg_storage.ids import thread_of
from smg_storage.records import Access, Turn
from smg_storage.store_wrapper import ids_of

FAILING_US: Final = 5_000_000
"""So long after a failure of the disk nothing is promised; then it is tried again."""
Tag = tuple[str, str]
"""A tenant and a thread of it."""


class SpoolError(Exception):
    """A turn was not spooled: the disk quota is full, or the disk fails. The message says which."""


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """Maximum of turns and bytes that may wait."""

    turns_max: int = 100_000
    bytes_max: int = 1 << 30


@dataclass(slots=True, eq=False)
class Waiting:
    """A spooled turn. `tags` are the threads of all ids that it writes; `tries` counts permanent
    failures.
    """

    folder: SpoolFolder
    place: Place
    tag: Tag
    tags: tuple[Tag, ...]
    spooled_us: int
    tries: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of it on the disk."""
        return self.place.end - self.place.start


class Spool:
    """Spool of one process, below `root`, the node's folder. `life` is this process's name in it."""

    def __init__(
        self,
        root: Path,
        life: str,
        *,
        limits: SpoolLimits,
        now_us: Callable[[], int],
        salt: Callable[[], bytes],
    ) -> None:
        self.turns = self.bytes = self.spooled = self.refused = self.dead = self.broken = 0
        """How many wait, of how many bytes; how many were put here and how many could not; how many are set aside."""
        self.changed: Callable[[], None] = lambda: None
        """Called when there is more to write."""
        self.filled: Callable[[bool], None] = lambda _: None
        """Called when there is something again, or nothing more."""
        self._root: Final = root
        self._limits: Final = limits
        self._now_us: Final = now_us
        self._salt: Final = salt
        self._own: Final = SpoolFolder(root / life, salt=salt)
        self._adopted: Final[dict[str, SpoolFolder]] = {}
        self._dead: Final = dead.DeadTurns(root, salt=salt)
        self._thread: Final = SpoolThread[Place](self._own.append)
        self._threads: Final[dict[Tag, deque[Waiting]]] = {}
        self._ready: Final[dict[Tag, None]] = {}
        self._later: Final[list[tuple[float, Tag]]] = []
        self._tags: Final[Counter[Tag]] = Counter()
        self._tenants: Final[Counter[str]] = Counter()
        self._reserved_turns = self._reserved_bytes = 0
        self._failed_us = 0
        self._gone = asyncio.Event()

    # ── What waits ───────────────────────────────────────────────────────────

    @property
    def full(self) -> bool:
        """Whether no more may wait."""
        limits = self._limits
        return (
            self.turns + self._reserved_turns >= limits.turns_max
            or self.bytes + self._reserved_bytes >= limits.bytes_max
        )

    @property
    def failing(self) -> bool:
        """Whether the last write to the disk failed."""
        return bool(self._failed_us) and self._now_us() - self._failed_us < FAILING_US

    def waits(self, tenant: str, ids: Iterable[str], *, any_of_them: bool = False) -> bool:
        """Return whether a turn is spooled that may write one of these ids, or any of the tenant's."""
        if not self._tags:
            return False
        if any_of_them:
            return tenant in self._tenants
        return any((tenant, thread_of(one)) in self._tags for one in ids)

    async def until_written(self, tenant: str, ids: Sequence[str], *, any_of_them: bool) -> None:
        """Return when none of them is spooled any more."""
        while self.waits(tenant, ids, any_of_them=any_of_them):
            await self._gone.wait()

    def oldest_s(self) -> float:
        """Age of the oldest spooled turn in seconds, 0 if there is none."""
        oldest = min((queue[0].spooled_us for queue in self._threads.values()), default=0)
        return max(0, self._now_us() - oldest) / 1e6 if oldest else 0.0

    # ── In ───────────────────────────────────────────────────────────────────

    async def add(self, access: Access, turn: Turn) -> None:
        """Return when a turn is synced to disk; SpoolError if that cannot be."""
        one = spool_format.spooled(access, turn, now_us=self._now_us())
        body = spool_format.encode(one)
        if self.full or self.bytes + self._reserved_bytes + len(body) > self._limits.bytes_max:
            self.refused += 1
            raise SpoolError("too many turns wait on this node's disk already")
        if len(body) > spool_format.BODY_BYTES_MAX:
            self.refused += 1
            raise SpoolError("the turn is too large")
        self._reserved_turns += 1
        self._reserved_bytes += len(body)

        def written(place: Place) -> None:
            self.spooled += 1
            self._failed_us = 0
            self._index(self._own, place, one)
            self.changed()

        try:
            await self._thread.append(body, written)
        except OSError as error:
            self.refused += 1
            self._failed_us = self._now_us()
            reason = (error.strerror or str(error)).lower()
            raise SpoolError(f"this node's disk takes nothing: {reason}") from error
        finally:
            self._reserved_turns -= 1
            self._reserved_bytes -= len(body)

    async def adopt(self) -> int:
        """Take over turns of dead processes, or dead letters to be retried; return how many."""
        before = self.turns
        for path in await self._thread.call(self._others):
            folder = SpoolFolder(path, salt=self._salt)
            if not await self._thread.call(folder.take):
                continue
            for place, one in await self._thread.call(partial(_read, folder)):
                self._index(folder, place, one)
            self.broken += folder.broken
            self._adopted[path.name] = folder
            await self._thread.call(partial(self._leave, folder))
        self.dead = await self._thread.call(self._dead.count)
        if self.turns > before:
            self.changed()
        return self.turns - before

    # ── Out ──────────────────────────────────────────────────────────────────

    def take(self, now_s: float, most: int) -> Sequence[Tag]:
        """Return threads whose turns are to be written now; they are not returned again until given
        back.
        """
        while self._later and self._later[0][0] <= now_s:
            self._ready[heapq.heappop(self._later)[1]] = None
        taken = list(islice(self._ready, most))
        for tag in taken:
            del self._ready[tag]
        return taken

    def next_s(self) -> float:
        """Return when there is something to take: minus infinity for now, infinity for nothing
        before the next `add`.
        """
        if self._ready:
            return float("-inf")
        return self._later[0][0] if self._later else float("inf")

    def give_back(self, tag: Tag, *, due_s: float | None = None) -> None:
        """Let a thread be taken again, if turns of it wait: from a given time on, or at once."""
        if tag not in self._threads:
            return
        if due_s is None:
            self._ready[tag] = None
        else:
            heapq.heappush(self._later, (due_s, tag))

    def hurry(self) -> None:
        """Let everything be taken at once, except what the available store refused."""
        refused = []
        for due_s, tag in self._later:
            queue = self._threads.get(tag)
            if queue is not None and queue[0].tries:
                refused.append((due_s, tag))
            else:
                self._ready[tag] = None
        heapq.heapify(refused)
        self._later[:] = refused
        self.changed()

    def of(self, tag: Tag, most: int) -> Sequence[Waiting]:
        """Return the first turns of a thread."""
        queue = self._threads.get(tag, ())
        return list(islice(queue, most))

    async def load(self, one: Waiting) -> SpooledTurn:
        """Return a turn as it was; OSError or ValueError if the disk does not have it any more."""
        folder, place = one.folder, one.place
        return spool_format.decode(await self._thread.call(lambda: folder.load(place)))

    async def done(self, ones: Sequence[Waiting]) -> None:
        """Forget turns that the store has, on the disk first."""
        by_folder: dict[SpoolFolder, list[Place]] = {}
        for one in ones:
            by_folder.setdefault(one.folder, []).append(one.place)
        try:
            for folder, places in by_folder.items():
                await self._thread.call(partial(self._note, folder, places))
        finally:
            # A disk that does not take the note has them written again by the next process, which does no harm.
            for one in ones:
                self._forget(one)
            gone, self._gone = self._gone, asyncio.Event()
            gone.set()

    async def bury(self, one: Waiting, turn: SpooledTurn, *, kind: str, reason: str) -> bool:
        """Set a turn aside as a dead letter; False if that cannot be, and it stays in the spool."""
        body, now_us = spool_format.encode(turn), self._now_us()
        buried = await self._thread.call(
            lambda: self._dead.bury(turn, body, kind=kind, reason=reason, now_us=now_us)
        )
        if buried:
            self.dead += 1
            await self.done([one])
        return buried

    async def close(self) -> None:
        """Close; spooled turns are left to the next process."""
        await self._thread.call(self._close)
        self._thread.end()

    # ── The index ────────────────────────────────────────────────────────────

    def _index(self, folder: SpoolFolder, place: Place, one: SpooledTurn) -> None:
        tag = (one.tenant, thread_of(one.turn.response.id))
        tags = dict.fromkeys((one.tenant, thread_of(each)) for each in ids_of(one.turn))
        waiting = Waiting(folder, place, tag, tuple(tags), one.spooled_us)
        queue = self._threads.get(tag)
        if queue is None:
            queue = self._threads[tag] = deque()
            self._ready[tag] = None
        queue.append(waiting)
        self._tags.update(waiting.tags)
        self._tenants[one.tenant] += 1
        self.turns += 1
        self.bytes += waiting.bytes
        if self.turns == 1:
            self.filled(True)

    def _forget(self, one: Waiting) -> None:
        queue = self._threads[one.tag]
        assert queue[0] is one
        queue.popleft()
        if not queue:
            del self._threads[one.tag]
        for tag in one.tags:
            self._tags[tag] -= 1
            if not self._tags[tag]:
                del self._tags[tag]
        tenant = one.tag[0]
        self._tenants[tenant] -= 1
        if not self._tenants[tenant]:
            del self._tenants[tenant]
        self.turns -= 1
        self.bytes -= one.bytes
        if not self.turns:
            self.filled(False)

    # ── In the thread ────────────────────────────────────────────────────────

    def _others(self) -> Sequence[Path]:
        if not self._root.is_dir():
            return ()
        known = {self._own.path.name, dead.FOLDER, *self._adopted}
        paths = [one for one in self._root.iterdir() if one.is_dir()]
        return sorted(
            one for one in paths if one.name not in known and not one.name.startswith(".")
        )

    def _note(self, folder: SpoolFolder, places: Sequence[Place]) -> None:
        folder.done(places)
        if folder is not self._own:
            self._leave(folder)

    def _leave(self, folder: SpoolFolder) -> None:
        """Release another process's folder when no turn is left in it."""
        if folder.empty:
            folder.close()
            self._adopted.pop(folder.path.name, None)

    def _close(self) -> None:
        for folder in (self._own, *self._adopted.values()):
            folder.close()


def _read(folder: SpoolFolder) -> list[tuple[Place, SpooledTurn]]:
    """Return the turns of a folder without their documents, which the index does not need."""
    found = []
    for place, body in folder.read():
        try:
            found.append((place, _light(spool_format.decode(body))))
        except ValueError:
            folder.broken += 1
    return found


def _light(one: SpooledTurn) -> SpooledTurn:
    """Return the turn without its documents."""
    turn = one.turn
    items = [replace(item, document=b"") for item in turn.items]
    response = replace(turn.response, input=b"", response=b"")
    return replace(one, turn=replace(turn, response=response, items=items))
