"""List and watch: the machine that keeps a view of what the API server has, from pages, lines of a watch and time.

    LIST ──all pages──▶ WATCH ──its time is over──▶ WATCH
      ▲                   │ broken, expired, garbage, silent for 90 s, or a list is due
      │◀──── WAIT ◀───────┤ (waits only where something failed)
      └───────────────────┘

A list gives all objects and a version; the watch from that version tells each change in order. Neither is trusted
alone: what a broken watch would have told is lost, so a list follows every one, and one comes every ten minutes
though all seems well. A list is whole only if all its pages came; one that stopped early changes nothing.

A watch that is alive says so, by changes or by bookmarks once a minute. One that is silent for longer was forgotten,
or begins at a version that the server has not reached (its store was restored from a backup): no error comes then,
and nothing ever will.

Versions are opaque: only what was said last is given back. Time and chance are arguments; who asks is a driver that
does what `next_step` says and tells what came.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Raw

from smg_node.core.cooperative_steps import Steps
from smg_node.core.ports import Rng
from smg_node.discovery.kubernetes.objects import (
    NotUnderstoodError,
    read_bookmark,
    read_event,
    read_page,
    read_status,
    shown,
)
from smg_node.discovery.kubernetes.reading import ObjectCache, ObjectKey, Reading, ReadObject
from smg_node.discovery.sighting import Endpoint, Sighting, Unusable, View

LINE_MAX_BYTES: Final = 4 * 1024 * 1024
"""An object is at most 1.5 MiB in etcd; as JSON of another version it may grow."""
LIST_MAX_BYTES: Final = 64 * 1024 * 1024
"""16,384 pods of 4 KiB."""
OBJECTS_MAX: Final = 32_768
"""Twice as many as there may be workers."""
RETRY_AFTER_MAX_S: Final = 60
EXPIRED: Final = 410
_AT_ONCE: Final = 50
"""Endpoints read in one turn of the loop: 3 ms."""
_NOTHING: Final[Mapping[Endpoint, Sighting]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """How long the machine waits for what, in ms.

    A server's bookmarks come once a minute, so less than that is no silence. A watch that lived for `proven_ms` was a
    good one, and the list after it need not wait.
    """

    silence_ms: int = 90_000
    list_every_ms: int = 600_000
    list_deadline_ms: int = 30_000
    head_deadline_ms: int = 15_000
    watch_min_s: int = 300
    watch_max_s: int = 600
    early_ms: int = 5_000
    proven_ms: int = 10_000
    retry_min_ms: int = 1_000
    retry_max_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class ListPage:
    """Ask for a page of a list, the first one if `more` is empty; all of the list must have come by `deadline_ms`."""

    more: str
    deadline_ms: int
    room_bytes: int


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """Open a watch from `version` that the server is to end after `timeout_s`; it must be open by `deadline_ms`.

    A server whose process was stopped takes connections and says nothing.
    """

    version: str
    timeout_s: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask nothing before `until_ms`."""

    until_ms: int


Step: TypeAlias = ListPage | OpenWatch | Wait


@dataclass(slots=True)
class WatchCounts:
    """What happened since the machine began."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    expired: int = 0
    silent: int = 0
    garbage: int = 0
    failures: int = 0


class _Phase(Enum):
    LIST = "list"
    WATCH = "watch"
    WATCHING = "watching"


class ListWatch:
    """The machine. After anything that it is told, `view` is current and `next_step` says what to do."""

    def __init__(self, read: ReadObject, rng: Rng, *, times: WatchTimes = WatchTimes()) -> None:
        self.counts = WatchCounts()
        self._read = read
        self._rng = rng
        self._times = times
        self._cache = ObjectCache()
        self._phase = _Phase.LIST
        self._wait_until_ms = 0
        self._failed_in_a_row = 0
        self._trouble = ""
        self._failing_since_ms = 0
        self._whole_ms = 0
        self._sightings: Mapping[Endpoint, Sighting] = _NOTHING
        self._unusable: tuple[Unusable, ...] = ()
        self._gone: frozenset[Endpoint] = frozenset()
        self._is_stale = False
        # Of the list under way.
        self._more = ""
        self._listed: dict[ObjectKey, Reading] = {}
        self._listed_bytes = 0
        self._list_began_ms: int | None = None
        self._last_list_ms = 0
        # Of the watch.
        self._version = ""
        self._timeout_s = 0
        self._opened_ms = 0
        self._line_ms = 0
        self._line = bytearray()

    # ── What to do ───────────────────────────────────────────────────────────

    def next_step(self, now_ms: int) -> Step:
        """Return what to do now. Not to be asked while a watch is open."""
        assert self._phase is not _Phase.WATCHING, "an open watch is read until it ends"
        if now_ms < self._wait_until_ms:
            return Wait(self._wait_until_ms)
        if self._phase is _Phase.WATCH:
            spread = self._times.watch_max_s - self._times.watch_min_s
            self._timeout_s = self._times.watch_min_s + int(self._rng.random() * (spread + 1))
            deadline_ms = now_ms + self._times.head_deadline_ms
            return OpenWatch(self._version, self._timeout_s, deadline_ms)
        if self._list_began_ms is None:
            self._list_began_ms = now_ms
        return ListPage(
            self._more,
            self._list_began_ms + self._times.list_deadline_ms,
            LIST_MAX_BYTES - self._listed_bytes,
        )

    @property
    def is_watching(self) -> bool:
        """Whether a watch is open and is to be read on."""
        return self._phase is _Phase.WATCHING

    @property
    def watch_until_ms(self) -> int:
        """When `tick` has to be asked at the latest, while a watch is open and nothing comes."""
        return min(
            self._line_ms + self._times.silence_ms, self._last_list_ms + self._times.list_every_ms
        )

    @property
    def view(self) -> View:
        """All that is known."""
        if self._is_stale:
            self._is_stale = False
            sightings, self._unusable = self._cache.sightings()
            self._sightings = MappingProxyType(sightings)
            self._gone = self._cache.gone(sightings)
        return View(
            self._sightings,
            whole_ms=self._whole_ms,
            gone=self._gone,
            trouble=self._trouble,
            failing_since_ms=self._failing_since_ms,
            unusable=self._unusable,
        )

    # ── What came ────────────────────────────────────────────────────────────

    def take_page(self, body: bytes, now_ms: int) -> Steps[None]:
        """Take a page that came with status 200, some objects a step."""
        assert self._list_began_ms is not None, "a page was asked for"
        self._listed_bytes += len(body)
        try:
            page = read_page(body)
            read = 0
            for item in page.items or ():
                key, _, reading = self._read(item)
                self._listed[key] = reading
                self._check_number(len(self._listed))
                read += max(len(reading.sightings), 1)
                if read >= _AT_ONCE:
                    yield read
                    read = 0
        except NotUnderstoodError as error:
            self.counts.garbage += 1
            self.failed(str(error), now_ms)
            return
        self._more = page.metadata.more
        if self._more:
            return
        self._version = page.metadata.resource_version
        self._whole_ms = self._last_list_ms = self._list_began_ms
        self._is_stale |= self._cache.replace(self._listed)
        self.counts.lists += 1
        self._begin_list()
        self._phase = _Phase.WATCH

    def watch_opened(self, now_ms: int) -> None:
        """Take that the watch is open: the server answered 200."""
        self.counts.watches += 1
        self._phase = _Phase.WATCHING
        self._opened_ms = self._line_ms = now_ms
        self._line.clear()
        self._trouble = ""
        self._failing_since_ms = 0

    def feed(self, piece: bytes, now_ms: int) -> None:
        """Take bytes of the watch, cut anywhere. If it must end for them, `is_watching` is false afterwards.

        What waited here while this process slept may be as old as the sleep was long: after a long one it is not believed.
        """
        self.tick(now_ms)
        begin = 0
        while self.is_watching and (end := piece.find(b"\n", begin)) >= 0:
            line = bytes(self._line) + piece[begin:end] if self._line else piece[begin:end]
            self._line.clear()
            begin = end + 1
            if len(line) > LINE_MAX_BYTES:
                self._spoilt("a line of more than 4 MiB", now_ms)
            elif line.strip():
                self._take_line(line, now_ms)
        if not self.is_watching:
            return
        self._line += piece[begin:]
        if len(self._line) > LINE_MAX_BYTES:
            self._spoilt("a line of more than 4 MiB", now_ms)

    def watch_ended(self, now_ms: int) -> None:
        """Take that the watch is over: its connection broke, or the server ended it."""
        assert self.is_watching, "only a watch that was open ends"
        lived_ms = now_ms - self._opened_ms
        if not self._line and lived_ms >= self._timeout_s * 1000 - self._times.early_ms:
            self._failed_in_a_row = 0
            self._phase = _Phase.WATCH
        else:
            self._broken("the watch ended early", now_ms)

    def tick(self, now_ms: int) -> None:
        """Look at the time. If an open watch must end for it, `is_watching` is false afterwards."""
        if not self.is_watching:
            return
        is_silent = now_ms >= self._line_ms + self._times.silence_ms
        if is_silent or now_ms >= self._last_list_ms + self._times.list_every_ms:
            self.counts.silent += is_silent
            self._forgive(now_ms)
            self._begin_list()

    def failed(self, trouble: str, now_ms: int, *, retry_after_s: int = 0) -> None:
        """Take that what was asked failed, and why, in words for operators; a list is next, after a while."""
        self.counts.failures += 1
        self._failed_in_a_row += 1
        self._trouble = shown(trouble)
        self._failing_since_ms = self._failing_since_ms or max(now_ms, 1)
        self._begin_list()
        doubled = self._times.retry_min_ms << min(self._failed_in_a_row - 1, 16)
        wished = min(doubled, self._times.retry_max_ms) * (0.8 + 0.4 * self._rng.random())
        asked = min(max(retry_after_s, 0), RETRY_AFTER_MAX_S) * 1000
        self._wait_until_ms = now_ms + max(int(min(wished, self._times.retry_max_ms)), asked)

    # ── Lines ────────────────────────────────────────────────────────────────

    def _take_line(self, line: bytes, now_ms: int) -> None:
        try:
            event = read_event(line)
            match event.type:
                case "ADDED" | "MODIFIED":
                    key, version, reading = self._read(event.object)
                    changed = self._cache.put(key, reading)
                    self._check_number(len(self._cache))
                case "DELETED":
                    # Its object is the last one that matched: the type says that it does not any more.
                    key, version, reading = self._read(event.object)
                    changed = self._cache.drop(key, reading)
                case "BOOKMARK":
                    version, changed = read_bookmark(event.object), False
                case "ERROR":
                    self._refused_in_line(event.object, now_ms)
                    return
                case _:
                    raise NotUnderstoodError(f"a line of the unknown type {shown(event.type)!r}")
        except NotUnderstoodError as error:
            self._spoilt(str(error), now_ms)
            return
        if event.type == "BOOKMARK":
            self.counts.bookmarks += 1
        else:
            self.counts.events += 1
        self._version = version or self._version
        self._line_ms = now_ms
        self._whole_ms = now_ms
        self._is_stale |= changed

    def _check_number(self, objects: int) -> None:
        """Refuse to keep more than there is room for."""
        if objects > OBJECTS_MAX:
            raise NotUnderstoodError(f"more than {OBJECTS_MAX} objects are selected")

    def _refused_in_line(self, text: Raw, now_ms: int) -> None:
        """Take a refusal that came under status 200."""
        status = read_status(text)
        if status.code == EXPIRED:
            self.counts.expired += 1
            self._broken("the watch's version has expired", now_ms)
            return
        retry_after_s = status.details.retry_after_seconds if status.details else 0
        why = shown(status.message) or "no reason given"
        self.failed(
            f"the watch was refused: {status.code}: {why}", now_ms, retry_after_s=retry_after_s
        )

    def _spoilt(self, why: str, now_ms: int) -> None:
        self.counts.garbage += 1
        self._broken(why, now_ms)

    def _broken(self, why: str, now_ms: int) -> None:
        """End the watch, with a list at once if it had been a good one for long enough."""
        if self._forgive(now_ms):
            self._begin_list()
        else:
            self.failed(why, now_ms)

    def _forgive(self, now_ms: int) -> bool:
        """Forget former failures if the watch was a good one for long enough; true if it was."""
        if now_ms - self._opened_ms < self._times.proven_ms:
            return False
        self._failed_in_a_row = 0
        return True

    def _begin_list(self) -> None:
        self._phase = _Phase.LIST
        self._more = ""
        self._listed = {}
        self._listed_bytes = 0
        self._list_began_ms = None
        self._line.clear()
