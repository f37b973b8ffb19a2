"""Source run: one source on one node, from what it shows to what is written and reported; without a clock or tasks.

Whoever drives it calls `turn` whenever something happened or its time has come, and waits between the steps of it as
long as they say. A shared source is watched if that is this node's duty; what it shows is written if this node is the
writer, fifty rows at a time and twenty times a second. A file is each node's own.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import Final, TypeAlias

from smg_node.core.errors import SmgError
from smg_node.discovery.changes import (
    Changes,
    Looking,
    Memory,
    Reason,
    Write,
    changes_in_steps,
)
from smg_node.discovery.duty import Candidate, Duty, OwnStanding, Standing, duty
from smg_node.discovery.known import Known
from smg_node.discovery.registry_port import RegistryPort, ReportsPort
from smg_node.discovery.sighting import Endpoint, View

BATCH: Final = 50
"""So many rows are written twenty times a second."""
BATCH_APART_S: Final = 0.05
BREATH: Final = 10
"""After so many rows others may have their turn, which is a few milliseconds on a slow machine."""
REPORT_MS: Final = 1_000
"""Numbers of a report are said anew at most so often."""
WATCHES_MAX: Final = 2
"""In the cluster, of one source: the writer's and that of who stands by."""
TURN_MS: Final = 2_000
"""A turn comes at least so often: it says that this node lives."""
PAUSE_MS: Final = 8_000
"""Who has not had a turn for so long was stopped, and knows nothing of what happened meanwhile."""
ASK_AGAIN_MS: Final = 10_000
ORPHANED_MS: Final = 20_000
"""A source on which no node has reported for so long is in no settings: another one may have its workers."""
REFUSED_AGAIN_MS: Final = 30_000
"""What could not be written is tried again after that time."""

ASIDE: Final = "aside"
"""How a node stands that takes no new work and could otherwise watch."""

Steps: TypeAlias = Generator[float, None, int]
"""Steps of a turn: seconds to wait before the next one; at the end, the moment of the next turn in ms."""


class SourceRun:
    """One source. `shown` takes its views; `watching` and `restarts` say how it is to be run."""

    def __init__(
        self,
        kind: str,
        name: str,
        *,
        me: str,
        registry: RegistryPort,
        reports: ReportsPort,
        empty_confirm_ms: int,
        now_ms: int,
        keep: bool = False,
    ) -> None:
        self.kind: Final = kind
        self.name: Final = name
        self.view: View | None = None
        self.watching = False
        self.writing = False
        self.restarts = 0
        """Grows whenever the source is to begin anew."""
        self.duty = Duty("", "", ())
        self.found = Changes((), None, Memory())
        """What the last look came to."""
        self.written: dict[Reason, int] = {}
        self._me: Final = me
        self._keep: Final = keep
        self._registry: Final = registry
        self._reports: Final = reports
        self.empty_confirm_ms = empty_confirm_ms
        self._standing = OwnStanding("waiting", now_ms)
        self._shown_ms = now_ms
        self._since_ms = 0
        self._turned_ms = now_ms
        self._asked_ms = now_ms - ASK_AGAIN_MS
        self._failed: dict[Endpoint, tuple[str, int]] = {}
        self._silent: dict[str, int] = {}
        """Other owners on which no node reports, and since when."""
        self._listed: View | None = None
        self._refused: Mapping[Endpoint, str] = {}
        self._said: tuple[object, ...] = ()
        self._said_ms = now_ms - REPORT_MS

    # ── Inputs ───────────────────────────────────────────────────────────────

    def shown(self, view: View, now_ms: int) -> None:
        """Take a view of the source."""
        self.view, self._shown_ms = view, now_ms

    def set_aside(self, now_ms: int) -> None:
        """Let others have it while this node takes no new work; that it is configured here is still said."""
        self.watching = self.writing = False
        self._say(now_ms, ASIDE)

    def end(self) -> None:
        """Let others have it: this node ends."""
        self.watching = self.writing = False
        self._reports.withdraw(self.kind, self.name)

    # ── A turn ───────────────────────────────────────────────────────────────

    def turn(self, now_ms: int) -> Steps:
        """Do what is due, in steps; return when the next turn is."""
        self._stand(now_ms)
        self._take_part(now_ms)
        self._say(now_ms)
        wait_ms = TURN_MS
        if self.writing and self.view is not None and self._registry.held:
            next_ms = yield from self._write(self.view, now_ms)
            wait_ms = min(wait_ms, max(0, next_ms - now_ms))
            self._say(now_ms)
        self._turned_ms = now_ms
        return now_ms + wait_ms

    def _stand(self, now_ms: int) -> None:
        view = self.view
        answers = None if view is None or not self.watching else not view.failing_since_ms
        failing_ms = view.failing_since_ms if view is not None else 0
        if view is not None and not view.whole_ms and answers:
            answers = None
        self._standing = self._standing.after(
            watching=self.watching, answers=answers, failing_ms=failing_ms, now_ms=now_ms
        )

    def _take_part(self, now_ms: int) -> None:
        """See who does what now, and begin or end this node's part."""
        if self.kind == "file":
            self.watching = self.writing = True
            return
        if not self._registry.held:
            # Who has just joined has not heard yet who watches.
            return
        self.duty = self._duty(now_ms)
        was_watching, was_writing = self.watching, self.writing
        self.watching = self._me in self.duty.watchers and (was_watching or self._has_room())
        self.writing = self.watching and self._me == self.duty.writer
        if was_watching and not self.watching:
            self.view = None
        if was_writing and not self.writing:
            # What it held or refused is for the new writer to say.
            self.found = Changes((), None, Memory())
            self._failed.clear()
        stopped = now_ms - self._turned_ms > PAUSE_MS
        if self.writing and (stopped or not was_writing):
            self._begin_to_write(now_ms)

    def _has_room(self) -> bool:
        """Whether another watch may begin: one whose turn is over ends first, as soon as it hears of it."""
        reports = self._reports.of(self.kind, self.name)
        standing = [reports[node].standing for node in sorted(reports) if node != self._me]
        return sum(one in ("starting", "ok", "recovering") for one in standing) < WATCHES_MAX

    def _begin_to_write(self, now_ms: int) -> None:
        """Ask the source before anything is written: what it showed before may be old."""
        self._since_ms = now_ms
        self.found = Changes((), None, Memory())
        self._failed.clear()
        if self.view is not None:
            self._ask_again(now_ms)

    def _ask_again(self, now_ms: int) -> None:
        if now_ms - self._asked_ms >= ASK_AGAIN_MS or self._since_ms == now_ms:
            self._asked_ms = now_ms
            self.restarts += 1

    def _duty(self, now_ms: int) -> Duty:
        reports = dict(self._reports.of(self.kind, self.name))
        found = {
            node: Candidate(standing_of(report.standing), report.since_ms)
            for node, report in reports.items()
            if report.standing != ASIDE
        }
        found[self._me] = Candidate(self._standing.standing, now_ms - self._standing.since_ms)
        ranked = self._reports.ranked(self.kind, self.name, sorted(found))
        return duty(ranked, found)

    # ── Writing ──────────────────────────────────────────────────────────────

    def _write(self, view: View, now_ms: int) -> Steps:
        if self.kind == "file":
            self._list(view)
            return now_ms + REFUSED_AGAIN_MS
        yield from self._registry.catch_up()
        known = self._registry.known(self.kind)
        orphans = self._orphans(known.values(), now_ms)
        looking = Looking(
            name=self.name,
            now_ms=now_ms,
            shown_ms=self._shown_ms,
            since_ms=self._since_ms,
            room=self._registry.room(),
            empty_confirm_ms=self.empty_confirm_ms,
            calls_up=self._registry.calls_up,
            is_orphan=orphans.__contains__,
            contested=lambda: self._reports.contested(self.kind, self.name),
            dropped=self._registry.dropped(self.kind),
            keep=self._keep,
        )
        found = yield from changes_in_steps(view, known, self.found.memory, looking)
        self.found = found
        if found.ask_again:
            self._ask_again(now_ms)
        again_ms = yield from self._write_all(found.writes, now_ms)
        return min(again_ms, now_ms + TURN_MS if found.next_ms is None else found.next_ms)

    def _orphans(self, entries: Iterable[Known], now_ms: int) -> frozenset[str]:
        """Return the other owners of entries that are in no node's settings any more."""
        owners = {one.owner for one in entries} - {self.name, ""}
        self._silent = {
            owner: self._silent.get(owner, now_ms)
            for owner in sorted(owners)
            if not self._reports.of(self.kind, owner)
        }
        return frozenset(
            owner for owner, since_ms in self._silent.items() if now_ms - since_ms >= ORPHANED_MS
        )

    def _write_all(self, writes: tuple[Write, ...], now_ms: int) -> Steps:
        """Write what is due, in batches; what is no longer as it was when that was decided waits for the next turn."""
        self._failed = {
            endpoint: failed
            for endpoint, failed in self._failed.items()
            if now_ms - failed[1] < REFUSED_AGAIN_MS
        }
        due = [one for one in writes if one.endpoint not in self._failed]
        again_ms = now_ms + TURN_MS
        for at, one in enumerate(due):
            if at and at % BREATH == 0:
                yield BATCH_APART_S if at % BATCH == 0 else 0.0
            known: Known | None = self._registry.known(self.kind).get(one.endpoint)
            if known is not one.known or not self.writing:
                again_ms = now_ms
                continue
            self._write_one(one, now_ms)
        return again_ms

    def _write_one(self, one: Write, now_ms: int) -> None:
        try:
            if one.sighting is not None:
                self._registry.put(self.kind, self.name, one.sighting, keep=self._keep)
            elif one.reason is Reason.CHANGE:
                self._registry.inherit(self.kind, self.name, one.endpoint)
            elif one.reason is Reason.RELEASE:
                self._registry.release(self.kind, one.endpoint)
            else:
                self._registry.drop(self.kind, one.endpoint)
        except SmgError as error:
            self._failed[one.endpoint] = error.message, now_ms
            return
        self.written[one.reason] = self.written.get(one.reason, 0) + 1

    def _list(self, view: View) -> None:
        """List what the file lists, if that is known: a file that cannot be read takes nothing away."""
        if view is self._listed or not view.whole_ms:
            return
        if self._listed is None or view.sightings != self._listed.sightings:
            try:
                self._refused = self._registry.list_file(
                    [view.sightings[endpoint].url for endpoint in sorted(view.sightings)]
                )
            except SmgError as error:
                self._refused = {"": error.message}
                return
        self._listed = view

    # ── Reporting ────────────────────────────────────────────────────────────

    @property
    def refused(self) -> Mapping[Endpoint, str]:
        """What is shown and not registered, and why."""
        if self.kind == "file":
            return self._refused
        return {**self.found.refused, **{one: why for one, (why, _) in self._failed.items()}}

    @property
    def standing(self) -> Standing:
        """How the source stands here."""
        return self._standing.standing

    def _say(self, now_ms: int, standing: str = "") -> None:
        # That something is refused is said at once: who has it lets go of it less hastily then.
        said = (standing or self._standing.standing, self.writing, bool(self.refused))
        if said == self._said and now_ms - self._said_ms < REPORT_MS:
            return
        self._said, self._said_ms = said, now_ms
        report = self._report(now_ms)
        self._reports.publish(self.kind, self.name, {**report, "standing": said[0]})

    def _report(self, now_ms: int) -> Mapping[str, object]:
        view, found, refused = self.view, self.found, self.refused
        age_ms = -1 if view is None or not view.whole_ms else max(0, now_ms - view.whole_ms)
        return {
            "standing": self._standing.standing,
            "since_ms": max(0, now_ms - self._standing.since_ms),
            "sightings": 0 if view is None else len(view.sightings),
            "age_ms": age_ms,
            "writing": self.writing,
            "waiting": len(found.memory.waiting),
            "refused": len(refused),
            "trouble": "" if view is None else view.trouble,
            "held": _held(found, refused),
            "unusable": "" if view is None else _unusable(view),
        }


def standing_of(word: str) -> Standing:
    """Return what a node says of itself; a word of a newer version is one that waits."""
    match word:
        case "starting" | "ok" | "recovering" | "failing":
            return word
        case _:
            return "waiting"


def _held(found: Changes, refused: Mapping[Endpoint, str]) -> str:
    """Return in words what is kept or kept away, and why."""
    if found.held:
        return f"{len(found.held)} workers are shown no more, and one of them is up: kept until that is sure"
    if not refused:
        return ""
    endpoint = min(refused)
    more = f" ({len(refused)} in all)" if len(refused) > 1 else ""
    return f"{endpoint}: {refused[endpoint]}{more}" if endpoint else refused[endpoint]


def _unusable(view: View) -> str:
    if not view.unusable:
        return ""
    first = view.unusable[0]
    more = f" ({len(view.unusable)} in all)" if len(view.unusable) > 1 else ""
    return f"{first.origin}: {first.why}{more}"
