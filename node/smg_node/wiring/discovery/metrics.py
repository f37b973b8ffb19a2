"""Metrics of discovery, bound to the service: read at every scrape, and writes counted as they happen."""

from collections.abc import Callable, Sequence
from functools import partial

from smg_node.discovery.service import SourceState
from smg_node.discovery.source import label_of
from smg_node.telemetry.metrics.declared import shared_state as declared
from smg_node.telemetry.metrics.meters import Meters
from smg_node.telemetry.metrics.metric import Metric


class DiscoveryMetrics:
    """Counts of the node called `node`. Sources are few, and named by the configuration."""

    def __init__(self, meters: Meters, node: str) -> None:
        self._meters = meters
        self._node = node

    def wrote(self, source: str, reason: str, count: int) -> None:
        """Count rows that were written."""
        self._meters.cells.tally(declared.DISCOVERY_WRITES, source, reason).value += count

    def watch(self, states: Callable[[], Sequence[SourceState]]) -> None:
        """Read all others from these states."""
        readings: dict[Metric, Callable[[SourceState], float | None]] = {
            declared.DISCOVERY_SIGHTINGS: lambda one: one.sightings,
            declared.DISCOVERY_AGE: lambda one: one.age_s if one.age_s >= 0 else None,
            declared.DISCOVERY_FAILING: lambda one: one.standing in ("failing", "recovering"),
            # A list of a node's own is always written by it, and by nobody while it leaves.
            declared.DISCOVERY_WRITER: lambda one: None if one.kind == "file" else one.writing,
            declared.DISCOVERY_HELD: lambda one: one.held,
            declared.DISCOVERY_REFUSED: lambda one: one.refused,
            declared.DISCOVERY_UNUSABLE: lambda one: one.unusable,
        }
        for metric, of in readings.items():
            self._meters.watch(metric, partial(self._read, states, of))

    def _read(
        self,
        states: Callable[[], Sequence[SourceState]],
        of: Callable[[SourceState], float | None],
    ) -> dict[tuple[str, ...], float]:
        found = ((label_of(one.kind, one.name, self._node), of(one)) for one in states())
        return {(label,): float(value) for label, value in found if value is not None}
