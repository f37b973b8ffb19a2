"""Source keeper: the task of one source on one node, which takes its turns, watches while that is its duty, and tells."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from smg_node.discovery.changes import Reason
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


class SourceKeeper:
    """Task of one source on one node: whatever it provokes, those of other sources go on."""

    def __init__(
        self,
        source: Source,
        run: SourceRun,
        now_ms: Callable[[], int],
        notes: Notes | None,
        label: str,
    ) -> None:
        self._source: Final = source
        self._run: Final = run
        self._wake: Final = asyncio.Event()
        self._now_ms: Final = now_ms
        self._notes: Final = notes
        self._watch: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._restarts = 0
        self._label: Final = label
        self._failing = False
        self._was_held = False
        self._counted: Mapping[Reason, int] = {}
        self._refused_before = 0

    @property
    def run_of_source(self) -> SourceRun:
        """What the source comes to on this node."""
        return self._run

    def wake(self) -> None:
        """Look again soon."""
        self._wake.set()

    async def run(
        self,
        group: asyncio.TaskGroup,
        is_leaving: Callable[[], bool],
        before: asyncio.Task[None] | None,
    ) -> None:
        """Take turns until cancelled, when the task `before` has ended; nothing watches any more when this returns.

        While the node leaves or is set aside, others have the turns.
        """
        try:
            if before is not None:
                await asyncio.wait([before])
            await self._take_turns(group, is_leaving)
        finally:
            if self._watch is not None:
                self._watch.cancel()
            ending = [one for one in (before, self._watch, self._ending) if one is not None]
            if ending:
                await asyncio.wait(ending)

    async def _take_turns(self, group: asyncio.TaskGroup, is_leaving: Callable[[], bool]) -> None:
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
