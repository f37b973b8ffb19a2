"""Discovery views: sources of workers as all nodes report on them, with what is registered for each."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from smg_node.cluster.workers.source_reports import SourceReport, SourceReports
from smg_node.discovery.duty import Candidate, duty
from smg_node.discovery.source_run import ASIDE, standing_of
from smg_node.http.ports.discovery import DiscoveryView, SourceMember, SourceView

if TYPE_CHECKING:
    from smg_mesh.shared import Shared

NAMED_MAX: Final = 4
"""Nodes that are named at most in what is wrong with a source."""
SHARED_KINDS: Final = ("kubernetes", "dns")


class ClusterDiscovery:
    """Tells of discovery, on any node: what is reported and registered is shared."""

    def __init__(self, shared: "Shared") -> None:
        self._shared: Final = shared
        self._reports: Final = SourceReports(shared)

    def view(self) -> DiscoveryView:
        """Return all sources, by kind and name."""
        registered, removed = self._counts()
        named = {*self._reports.named(), *registered, *removed}
        sources = [
            self._source(kind, name, registered[kind, name], removed[kind, name])
            for kind, name in sorted(named)
        ]
        return DiscoveryView(self._shared.name, [one for one in sources if one is not None])

    def _counts(self) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        """Return how many workers each shared source is a reason for, and how many of its operators removed."""
        registered: Counter[tuple[str, str]] = Counter()
        removed: Counter[tuple[str, str]] = Counter()
        workers = self._shared.workers
        for worker_id in workers.shared():
            for kind in SHARED_KINDS:
                found = workers.found(worker_id, "dns" if kind == "dns" else "kubernetes")
                if found is not None:
                    (registered if found.counts else removed)[kind, found.name] += 1
        return registered, removed

    def _source(self, kind: str, name: str, registered: int, removed: int) -> SourceView | None:
        reports = self._reports.of(kind, name)
        if not reports and not (registered or removed):
            return None
        members = [_member(node, report) for node, report in reports.items()]
        if kind == "file":
            trouble = _own_trouble(members)
            return SourceView(kind, name, "", "", registered, removed, trouble, members)
        candidates = {
            node: Candidate(standing_of(report.standing), report.since_ms)
            for node, report in reports.items()
            if report.standing != ASIDE
        }
        roles = duty(self._reports.ranked(kind, name, sorted(candidates)), candidates)
        # Who writes says so itself; who is to is what all nodes come to.
        writing = [member.node for member in members if member.writing]
        writer = writing[0] if writing else roles.writer
        standby = roles.standby if roles.standby != writer else ""
        trouble = _trouble(members, writing)
        return SourceView(kind, name, writer, standby, registered, removed, trouble, members)


def _member(node: str, report: SourceReport) -> SourceMember:
    return SourceMember(
        node=node,
        standing=report.standing,
        since_ms=report.since_ms,
        writing=report.writing,
        sightings=report.sightings,
        age_ms=None if report.age_ms < 0 else report.age_ms,
        waiting=report.waiting,
        refused=report.refused,
        trouble=report.trouble,
        held=report.held,
        unusable=report.unusable,
    )


def _own_trouble(members: list[SourceMember]) -> str:
    """Return what is wrong with lists that are each node's own: that of one is read by nobody else."""
    failing = [member.node for member in members if member.standing == "failing"]
    if not failing:
        return ""
    named = ", ".join(failing[:NAMED_MAX])
    more = f" and {len(failing) - NAMED_MAX} more" if len(failing) > NAMED_MAX else ""
    return f"{named}{more}: the list cannot be read; its workers stay as they are"


def _trouble(members: list[SourceMember], writing: list[str]) -> str:
    if not members:
        return "no living node is configured with it any more; its workers go after a minute, or stay if it says keep"
    failing = [member for member in members if member.standing == "failing"]
    well = [member for member in members if member.standing in ("ok", "recovering")]
    if failing and not well:
        return "it answers no node; its workers stay as they are"
    if len(writing) > 1:
        return f"{' and '.join(writing)} write at a time, for a moment"
    return ""
