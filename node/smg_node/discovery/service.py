"""Discovery service: runs the sources that are this node's to watch, and tells what they come to.

    source ─▶ view ─▶ run of the source ─▶ registry ─▶ every node's fleet

Each source has a task that takes its turns, and one that watches while that is this node's duty. Whatever a source does,
the others go on. Sources may come, change and go while it runs; one that changed is asked anew, and nothing is concluded
from what it showed before.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from smg_node.discovery.registry_port import RegistryPort, ReportsPort
from smg_node.discovery.source import Source, label_of
from smg_node.discovery.source_keeper import Notes, SourceKeeper
from smg_node.discovery.source_run import SourceRun

Key: TypeAlias = tuple[str, str]
"""Kind and name of a source."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Source as it is to be run. Of two with equal `said` the first one goes on.

    `keep`: its workers stay when it is in no settings any more.
    """

    source: Source
    said: object
    keep: bool = False

    @property
    def key(self) -> Key:
        """Kind and name."""
        return self.source.kind, self.source.name


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


@dataclass(slots=True)
class _Running:
    """A source that is seen to; `task` is None before the service runs."""

    plan: Plan
    keeper: SourceKeeper
    task: asyncio.Task[None] | None = None


class DiscoveryService:
    """All sources of one node. `is_leaving`: whether it leaves, and lets others watch."""

    def __init__(
        self,
        plans: Sequence[Plan] = (),
        *,
        me: str,
        registry: RegistryPort,
        reports: ReportsPort,
        empty_confirm_s: float,
        monotonic_s: Callable[[], float],
        is_leaving: Callable[[], bool] = lambda: False,
        notes: Notes | None = None,
    ) -> None:
        self._me: Final = me
        self._registry: Final = registry
        self._reports: Final = reports
        self._confirm_ms = round(1000 * empty_confirm_s)
        self._monotonic_s: Final = monotonic_s
        self._is_leaving: Final = is_leaving
        self._notes: Final = notes
        self._group: asyncio.TaskGroup | None = None
        self._running: dict[Key, _Running] = {}
        self.follow(plans)

    # ── Which sources ────────────────────────────────────────────────────────

    def follow(self, plans: Sequence[Plan]) -> None:
        """See to exactly these sources from now on; those whose plan is as before go on as they are."""
        wanted = {plan.key: plan for plan in plans}
        for key in [key for key in self._running if key not in wanted]:
            self._stop(self._running.pop(key))
        for key, plan in wanted.items():
            before = self._running.get(key)
            if before is not None and before.plan.said == plan.said:
                continue
            # What is reported of it stays as it is: it is in the settings of this node all the time.
            ended = None if before is None else _cancelled(before)
            self._running[key] = running = _Running(plan, self._keeper(plan))
            self._start(running, ended)

    def confirm(self, empty_confirm_s: float) -> None:
        """Believe from now on after so many seconds that a source shows none of its workers any more."""
        self._confirm_ms = round(1000 * empty_confirm_s)
        for one in self._running.values():
            one.keeper.run_of_source.empty_confirm_ms = self._confirm_ms
            one.keeper.wake()

    def _keeper(self, plan: Plan) -> SourceKeeper:
        source = plan.source
        run = SourceRun(
            source.kind,
            source.name,
            me=self._me,
            registry=self._registry,
            reports=self._reports,
            empty_confirm_ms=self._confirm_ms,
            now_ms=self._now_ms(),
            keep=plan.keep,
        )
        label = label_of(source.kind, source.name, self._me)
        return SourceKeeper(source, run, self._now_ms, self._notes, label)

    def _start(self, running: _Running, before: asyncio.Task[None] | None) -> None:
        if self._group is None:
            return
        kind, name = running.plan.key
        turns = running.keeper.run(self._group, self._is_leaving, before)
        running.task = self._group.create_task(turns, name=f"discovery {kind}/{name}")

    def _stop(self, running: _Running) -> None:
        _cancelled(running)
        running.keeper.run_of_source.end()

    # ── What they come to ────────────────────────────────────────────────────

    def wake(self) -> None:
        """Look again soon: members, reports or workers are other ones."""
        for one in self._running.values():
            one.keeper.wake()

    def states(self) -> Sequence[SourceState]:
        """Return how each source is on this node now."""
        return [self._state(one.keeper.run_of_source) for one in self._running.values()]

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
                self._group = group
                for one in self._running.values():
                    self._start(one, None)
                await asyncio.Event().wait()
        finally:
            self._group = None
            for one in self._running.values():
                one.keeper.run_of_source.end()

    def _now_ms(self) -> int:
        return int(self._monotonic_s() * 1000)


def _cancelled(running: _Running) -> asyncio.Task[None] | None:
    """Cancel the task of a source, and return it."""
    if running.task is not None:
        running.task.cancel()
    return running.task
