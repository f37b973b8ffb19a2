"""Duties of this node for all others (limits owned, workers probed, turns spooled), shown while it
drains.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, Protocol

from smg_mesh.shared import Report, Row
from smg_node.cluster.membership.cluster_interface import SPOOLED
from smg_node.cluster.workers.shared_verdicts import SharedVerdicts
from smg_node.http.ports.drain import Duties
from smg_node.http.ports.node import Cluster

KEYS_MAX: Final = 1000
"""Of limits that are looked at: what is counted here is shown, and nothing depends on it."""


class _Rights(Protocol):
    def report(self, key: str) -> Report | None: ...

    def rows(self) -> Sequence[Row]: ...


class _Workers(Protocol):
    def records(self) -> Sequence[Any]: ...


class Holdings(Protocol):
    """Port to the state these duties follow from; `smg_mesh.shared.Shared` has it."""

    @property
    def rights(self) -> _Rights:
        """What this node may spend of the limits, and which it owns."""
        ...

    @property
    def workers(self) -> _Workers:
        """The workers of the cluster."""
        ...


def duties_of(name: str, shared: Holdings, outlook: SharedVerdicts, cluster: Cluster) -> Duties:
    """Return how many recently used limits this node owns, how many workers it probes, and whether
    turns wait here.
    """
    keys = islice({row.key: None for row in shared.rights.rows()}, KEYS_MAX)
    reports = (shared.rights.report(key) for key in keys)
    mine = next((row for row in cluster.members() if row.me), None)
    return Duties(
        limits=sum(report is not None and report.term > 0 for report in reports),
        workers=sum(name in outlook.probers(one.id) for one in shared.workers.records()),
        spooled=mine is not None and bool(mine.meta.get(SPOOLED)),
    )
