"""Orphaned findings: workers of sources that are in nobody's settings any more, given up after a minute or kept as added.

What an orphan is says `discovery.orphans`; here the cluster's state is looked at, and one of the living nodes does what
follows. A source that says `keep` leaves its workers as if an operator had added them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from smg_mesh.shared import StateError, probers

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.cluster.workers.discovered_workers import Finding
    from smg_node.cluster.workers.source_reports import SourceReports
    from smg_node.discovery.orphans import FoundEntry, Homes, Key

APART_S: Final = 15.0
SLICE: Final = 100
_KINDS: Final[tuple[Literal["dns", "kubernetes"], ...]] = ("dns", "kubernetes")
_ENDS: Final = "leaving"


class OrphanedFindings:
    """Sees to it on one node; one of the living ones does what is to be done."""

    def __init__(self, shared: "Shared", monotonic_s: Callable[[], float]) -> None:
        self._shared: Final = shared
        self._monotonic_s: Final = monotonic_s
        self._since_s: Mapping[Key, float] = {}
        self._looked_s = -APART_S
        self._reports: SourceReports | None = None

    async def tidy(self) -> None:
        """Look at all that sources found, every fifteen seconds; costs nothing where nothing was found."""
        now_s = self._monotonic_s()
        found = self._shared.workers.shared()
        if not found or now_s < self._looked_s + APART_S:
            return
        self._looked_s = now_s
        # Imported here, as the reports are: where nothing was found there is nothing to look after.
        from smg_node.discovery.orphans import orphans

        entries = await self._entries(found)
        seen = orphans(entries, self._since_s, self._homes(), now_s=now_s)
        self._since_s = seen.since_s
        for at, entry in enumerate(seen.due):
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            if self._is_mine(entry.key):
                self._let_go(entry)

    async def _entries(self, worker_ids: Sequence[str]) -> "list[FoundEntry]":
        entries: list[FoundEntry] = []
        for at, worker_id in enumerate(worker_ids):
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            for kind in _KINDS:
                found = self._shared.workers.found(worker_id, kind)
                if found is not None:
                    entries.append(_entry(kind, found))
        return entries

    def _homes(self) -> "Homes":
        from smg_node.discovery.orphans import Homes

        definitions = self._shared.discovery
        return Homes(
            frozenset(self._shared.living()),
            self._has_home,
            lambda key: definitions.removed("/".join(key)),
        )

    def _has_home(self, key: "Key") -> bool:
        """Whether a living node has a source in its settings, or the cluster defines it, if only newer nodes follow that."""
        if self._reports is None:
            from smg_node.cluster.workers.source_reports import SourceReports

            self._reports = SourceReports(self._shared)
        name = "/".join(key)
        definitions = self._shared.discovery
        if definitions.get(name) is not None or self._reports.of(*key):
            return True
        return any(one.key == name for one in definitions.unreadable())

    def _is_mine(self, key: "Key") -> bool:
        candidates = [(node, "") for node in self._shared.living()]
        chosen = probers(f"orphans/{key[0]}/{key[1]}", candidates, count=1, all_up_to=1)
        return chosen == (self._shared.name,)

    def _let_go(self, entry: "FoundEntry") -> None:
        """Drop an entry, if it is as it was; first let its worker stay by an operator's word, if it is to."""
        from smg_node.discovery.orphans import is_orphan

        workers = self._shared.workers
        kind: Literal["dns", "kubernetes"] = "dns" if entry.key[0] == "dns" else "kubernetes"
        found = workers.found(entry.worker_id, kind)
        if found is None or _entry(kind, found) != entry or not is_orphan(entry, self._homes()):
            return
        record = workers.get(entry.worker_id)
        if entry.stays and record is not None and "api" not in record.sources:
            try:
                workers.add(entry.worker_id, "api", found.spec)
            except StateError:
                # No room now: it is tried again, and nothing is dropped before.
                return
        workers.drop(entry.worker_id, kind)


def _entry(kind: str, found: "Finding") -> "FoundEntry":
    from smg_node.discovery.orphans import FoundEntry

    serves = found.counts and found.state != _ENDS
    key, version = (kind, found.name), found.version
    return FoundEntry(key, found.worker_id, found.by, version, found.keep, serves)
