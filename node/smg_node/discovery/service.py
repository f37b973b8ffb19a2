"""Discovery service: runs the sources that are this node's to watch, and tells what they come to.

    source ─▶ view ─▶ run of the source ─▶ registry ─▶ every node's fleet

Each source has a task that takes its turns, and one that watches while that is this node's duty. Whatever a source does,
the others go on.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from smg_node.discovery.changes import Reason
from smg_node.discovery.registry_port import RegistryPort, ReportsPort
from smg_node.discovery.sighting import View
from smg_node.discovery.source import Source
from smg_node.discovery.source_run import SourceRun

APART_S: Final = 0.1
"""Two looks at everything are so far apart at least …"""
APART_PER_WORKER_S: Final = 0.00005
"""… and this for each endpoint that there is: a look costs two microseconds each."""
LEAVING_LOOK_S: Final = 0.5
RESTART_S: Final = 5.0
"""After an error that no source should make."""

_log: Final = logging.getLogger("smg_node.discovery")


class Notes(Protocol):
    """What is counted of discovery."""

    def wrote(self, source: str, reason: str, count: int) -> None:
        """Count rows that were written."""
        ...


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source as it is on this node now, for metrics."""

    kind: str
    name: str
    standing: str
    writing: bool
    watching: bool
    sightings: int
    age_s: float
    held: int
    refused: int
    unusable: int


class DiscoveryService:
    """All sources of one node. `is_leaving`: whether it leaves, and lets others watch."""

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        me: str,
        registry: RegistryPort,
        reports: ReportsPort,
        empty_confirm_s: float,
        monotonic_s: Callable[[], float],
        is_leaving: Callable[[], bool] = lambda: False,
        notes: Notes | None = None,
    ) -> None:
        self._monotonic_s: Final = monotonic_s
        self._is_leaving: Final = is_leaving
        self._notes: Final = notes
        self._wake: Final = [asyncio.Event() for _ in sources]
        self._sources: Final = [
            (
                source,
                SourceRun(
                    source.kind,
                    source.name,
                    me=me,
                    registry=registry,
                    reports=reports,
                    empty_confirm_ms=round(1000 * empty_confirm_s),
                    now_ms=self._now_ms(),
                ),
            )
            for source in sources
        ]

    def wake(self) -> None:
        """Look again soon: members, reports or workers are other ones."""
        for event in self._wake:
            event.set()

    def states(self) -> Sequence[SourceState]:
        """Return how each source is on this node now."""
        return [self._state(run) for _, run in self._sources]

    def _state(self, run: SourceRun) -> SourceState:
        view = run.view
        whole_ms = 0 if view is None else view.whole_ms
        age_s = max(0, self._now_ms() - whole_ms) / 1000 if whole_ms else -1.0
        return SourceState(
            run.kind,
            run.name,
            run.standing,
            run.writing,
            run.watching,
            0 if view is None else len(view.sightings),
            age_s,
            len(run.found.held),
            len(run.refused),
            0 if view is None else len(view.unusable),
        )

    async def run(self) -> None:
        """See to all sources until cancelled; then let others have them."""
        try:
            async with asyncio.TaskGroup() as group:
                for (source, run), wake in zip(self._sources, self._wake, strict=True):
                    keeper = _Keeper(source, run, wake, self._now_ms, self._notes)
                    name = f"discovery {source.kind}/{source.name}"
                    group.create_task(keeper.run(group, self._is_leaving), name=name)
        finally:
            for _, run in self._sources:
                run.end()

    def _now_ms(self) -> int:
        return int(self._monotonic_s() * 1000)


class _Keeper:
    """Task of one source."""

    def __init__(
        self,
        source: Source,
        run: SourceRun,
        wake: asyncio.Event,
        now_ms: Callable[[], int],
        notes: Notes | None,
    ) -> None:
        self._source: Final = source
        self._run: Final = run
        self._wake: Final = wake
        self._now_ms: Final = now_ms
        self._notes: Final = notes
        self._watch: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._restarts = 0
        self._label: Final = f"{source.kind}/{source.name}" if source.name else source.kind
        self._failing = False
        self._was_held = False
        self._counted: Mapping[Reason, int] = {}
        self._refused_before = 0

    async def run(self, group: asyncio.TaskGroup, is_leaving: Callable[[], bool]) -> None:
        """Take turns until cancelled; while the node leaves or is set aside, others have them."""
        while True:
            if is_leaving():
                self._run.set_aside(self._now_ms())
                self._attend(group)
                await asyncio.sleep(LEAVING_LOOK_S)
                continue
            next_ms = await self._turn()
            self._attend(group)
            self._tell()
            view = self._run.view
            count = 0 if view is None else len(view.sightings)
            await asyncio.sleep(APART_S + APART_PER_WORKER_S * count)
            await self._rest(next_ms)

    async def _turn(self) -> int:
        self._wake.clear()
        steps = self._run.turn(self._now_ms())
        while True:
            try:
                wait_s = next(steps)
            except StopIteration as end:
                next_ms: int = end.value
                return next_ms
            await asyncio.sleep(wait_s)

    async def _rest(self, until_ms: int) -> None:
        try:
            async with asyncio.timeout(max(0.0, (until_ms - self._now_ms()) / 1000)):
                await self._wake.wait()
        except TimeoutError:
            return

    # ── Watching ─────────────────────────────────────────────────────────────

    def _attend(self, group: asyncio.TaskGroup) -> None:
        """Begin, end or begin anew to watch, as the run says."""
        run = self._run
        restart = run.restarts != self._restarts
        self._restarts = run.restarts
        if self._watch is not None and (restart or not run.watching):
            self._watch.cancel()
            self._ending, self._watch = self._watch, None
        if run.watching and self._watch is None:
            self._watch = group.create_task(
                self._watched(self._ending), name=f"watch {self._label}"
            )
            self._ending = None

    async def _watched(self, before: asyncio.Task[None] | None) -> None:
        """Watch, when the watch `before` has ended: there are never two of one node."""
        if before is not None:
            await asyncio.wait([before])
        while True:
            try:
                await self._source.run(self._show)
            except Exception:
                # A door: whatever one source provokes, the others must go on.
                _log.exception("discovery: watching %s failed", self._label)
            await asyncio.sleep(RESTART_S)

    def _show(self, view: View) -> None:
        self._run.shown(view, self._now_ms())
        self._wake.set()

    # ── Telling ──────────────────────────────────────────────────────────────

    def _tell(self) -> None:
        """Say once what an operator wants to know, and count what was written."""
        self._count()
        self._tell_trouble()
        self._tell_held()
        self._tell_refused()

    def _count(self) -> None:
        written = dict(self._run.written)
        for reason, count in written.items():
            new = count - self._counted.get(reason, 0)
            if new and self._notes is not None:
                self._notes.wrote(self._label, reason.value, new)
        self._counted = written

    def _tell_trouble(self) -> None:
        view = self._run.view
        failing = view is not None and bool(view.failing_since_ms)
        if failing == self._failing or view is None:
            return
        self._failing = failing
        if failing:
            since_s = max(0, self._now_ms() - view.failing_since_ms) / 1000
            text = "discovery: %s does not answer since %.0f s; its workers stay as they are: %s"
            extra = {"fields": {"event": "discovery_failing", "source": self._label}}
            _log.warning(text, self._label, since_s, view.trouble or "no answer", extra=extra)
        else:
            extra = {"fields": {"event": "discovery_answers", "source": self._label}}
            _log.info("discovery: %s answers again", self._label, extra=extra)

    def _tell_held(self) -> None:
        found = self._run.found
        is_held = bool(found.held)
        if is_held == self._was_held:
            return
        self._was_held = is_held
        extra = {"fields": {"event": "discovery_empty", "source": self._label}}
        if is_held:
            left_s = max(0, found.held_until_ms - self._now_ms()) / 1000
            text = (
                "discovery: %s shows none of its %d workers any more, and one of them answers; they are kept"
                " for %.0f s and then believed to be gone"
            )
            _log.warning(text, self._label, len(found.held), left_s, extra=extra)
        else:
            _log.info("discovery: %s: what was kept is settled", self._label, extra=extra)

    def _tell_refused(self) -> None:
        refused = self._run.refused
        if len(refused) > self._refused_before:
            shown = "; ".join(f"{one}: {refused[one]}" for one in sorted(refused)[:4])
            text = "discovery: %s shows %d endpoints that are not registered: %s"
            _log.warning(text, self._label, len(refused), shown)
        self._refused_before = len(refused)
