"""Orphaned findings: workers of sources that no node is configured with any more, dropped after a minute.

A source has been taken out of the settings if the node that wrote its entries lives and no living node reports on it.
Where that node does not live, nobody knows: such workers stay, and probers see to them.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from smg_mesh.shared import probers

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.cluster.workers.discovered_workers import Finding
    from smg_node.cluster.workers.source_reports import SourceReports

TAKEN_OUT_S: Final = 60.0
"""Put back into the settings in time, nothing happened."""
APART_S: Final = 15.0
SLICE: Final = 100


class OrphanedFindings:
    """Sees to it on one node; one of the living ones does what is to be done."""

    def __init__(self, shared: "Shared", monotonic_s: Callable[[], float]) -> None:
        self._shared: Final = shared
        self._monotonic_s: Final = monotonic_s
        self._since_s: dict[tuple[str, str], float] = {}
        self._looked_s = -APART_S
        self._reports: SourceReports | None = None

    async def tidy(self) -> None:
        """Look at all that sources found, every fifteen seconds; costs nothing where nothing was found."""
        workers, now_s = self._shared.workers, self._monotonic_s()
        found = workers.shared()
        if not found or now_s < self._looked_s + APART_S:
            return
        self._looked_s = now_s
        orphans: dict[tuple[str, str], list[str]] = {}
        for at, worker_id in enumerate(found):
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            for source in self._orphaned(worker_id):
                orphans.setdefault(source, []).append(worker_id)
        self._since_s = {source: self._since_s.get(source, now_s) for source in sorted(orphans)}
        for kind, name in sorted(orphans):
            if now_s - self._since_s[kind, name] >= TAKEN_OUT_S and self._is_mine(kind, name):
                await self._drop(kind, name, orphans[kind, name])

    def _orphaned(self, worker_id: str) -> list[tuple[str, str]]:
        """Return the sources without a home that say something of a worker."""
        living = self._shared.living()
        found = [
            (kind, entry)
            for kind in ("dns", "kubernetes")
            if (entry := self._found(worker_id, kind)) is not None
        ]
        return [
            (kind, entry.name)
            for kind, entry in found
            if entry.name and entry.by in living and not self._reported(kind, entry.name)
        ]

    def _found(self, worker_id: str, kind: str) -> "Finding | None":
        return self._shared.workers.found(worker_id, "dns" if kind == "dns" else "kubernetes")

    def _reported(self, kind: str, name: str) -> bool:
        if self._reports is None:
            # Imported here: where nothing was found there is nothing to report on.
            from smg_node.cluster.workers.source_reports import SourceReports

            self._reports = SourceReports(self._shared)
        return bool(self._reports.of(kind, name))

    def _is_mine(self, kind: str, name: str) -> bool:
        candidates = [(node, "") for node in self._shared.living()]
        chosen = probers(f"orphans/{kind}/{name}", candidates, count=1, all_up_to=1)
        return chosen == (self._shared.name,)

    async def _drop(self, kind: str, name: str, worker_ids: list[str]) -> None:
        for at, worker_id in enumerate(worker_ids):
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            entry = self._found(worker_id, kind)
            if entry is not None and entry.name == name and not self._reported(kind, name):
                self._shared.workers.drop(worker_id, "dns" if kind == "dns" else "kubernetes")
