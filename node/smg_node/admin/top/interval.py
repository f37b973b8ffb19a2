"""Interval between two snapshots: rates of counters, and quantiles of times from histograms. Pure.

Every node's rates are by its own clock, so that a late answer makes no rate wrong. A counter that
is lower than before began anew with its node, and all of it is new. A node that was not there
before has no rates yet.

Every result is for all groups at a time, `by` the value of a label, by node, or all in one: a
cluster with a thousand tenants is gone through once a number, and not once a tenant.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from smg_node.admin.top.snapshot import Labels, NodeCounts, Snapshot

TOGETHER: Final = ""
"""Groups nothing: all is one, under this name."""
NODE: Final = "node"
"""Groups by the node that said so, whatever labels there are."""


class Interval:
    """From `before` to `now`; None before is the first look, of which gauges are all that is known."""

    def __init__(self, before: Snapshot | None, now: Snapshot) -> None:
        self.now: Final = now
        old = {} if before is None else before.nodes
        self._pairs: Final = [
            (old[name], counts)
            for name, counts in now.nodes.items()
            if not counts.silent
            and name in old
            and not old[name].silent
            # A clock that went back began anew with its machine: there is nothing to compare with.
            and counts.at_s > old[name].at_s
        ]
        self.seen_twice: Final = frozenset(counts.name for _, counts in self._pairs)
        """The nodes of which rates are known."""

    def sums(self, name: str, by: str = TOGETHER, **wanted: str) -> dict[str, float]:
        """Return the sums of a gauge, or of a counter since the nodes began, over series with `wanted` labels."""
        found: dict[str, float] = {}
        for group, value in self._values(name, by, wanted):
            found[group] = found.get(group, 0.0) + value
        return found

    def largest(self, name: str, by: str = TOGETHER, **wanted: str) -> dict[str, float]:
        """Return the largest value of each group, of a gauge that several nodes get from one
        source.
        """
        found: dict[str, float] = {}
        for group, value in self._values(name, by, wanted):
            found[group] = max(value, found.get(group, value))
        return found

    def rates(self, name: str, by: str = TOGETHER, **wanted: str) -> dict[str, float]:
        """Return how much counters grew in a second."""
        found: dict[str, float] = {}
        for before, counts in self._pairs:
            span_s = counts.at_s - before.at_s
            for labels, grown in self._grown(name, counts, before):
                group = self._group(name, by, counts, labels, wanted)
                if group is not None:
                    found[group] = found.get(group, 0.0) + grown[0] / span_s
        return found

    def spreads(self, name: str, by: str = TOGETHER, **wanted: str) -> dict[str, list[float]]:
        """Return the counts of a histogram up to each bound, of what was added in between."""
        found: dict[str, list[float]] = {}
        width = len(self.bounds(name)) + 1
        for before, counts in self._pairs:
            for labels, grown in self._grown(name, counts, before):
                group = self._group(name, by, counts, labels, wanted)
                if group is not None:
                    so_far = found.setdefault(group, [0.0] * width)
                    # Behind the counts there is the sum.
                    for at in range(width):
                        so_far[at] += grown[at]
        return found

    def bounds(self, name: str) -> Sequence[float]:
        """Return the bounds of a histogram."""
        metric = self.now.metrics.get(name)
        return () if metric is None else metric.buckets

    # ── Series ───────────────────────────────────────────────────────────────

    def _values(self, name: str, by: str, wanted: Mapping[str, str]) -> Iterator[tuple[str, float]]:
        for counts in self.now.nodes.values():
            for labels, values in counts.rows.get(name, {}).items():
                group = self._group(name, by, counts, labels, wanted)
                if group is not None:
                    yield group, values[0]

    def _group(
        self, name: str, by: str, counts: NodeCounts, labels: Labels, wanted: Mapping[str, str]
    ) -> str | None:
        """Return the group of a series; None for none."""
        names = self.now.metrics[name].labels if name in self.now.metrics else ()
        for label, value in wanted.items():
            if label not in names or labels[names.index(label)] != value:
                return None
        if by == NODE:
            return counts.name
        if by == TOGETHER:
            return TOGETHER
        return labels[names.index(by)] if by in names else None

    def _grown(
        self, name: str, counts: NodeCounts, before: NodeCounts
    ) -> Iterator[tuple[Labels, Sequence[float]]]:
        old = before.rows.get(name, {})
        for labels, values in counts.rows.get(name, {}).items():
            was = old.get(labels)
            if was is None:
                # It may have been there, among what was cut as too much.
                if not before.cut:
                    yield labels, values
            elif any(map(float.__lt__, values, was)):
                yield labels, values
            else:
                yield labels, [new - one for new, one in zip(values, was, strict=True)]


def quantile(bounds: Sequence[float], cumulative: Sequence[float], part: float) -> float | None:
    """Return the value that `part` of all is not above; `cumulative` has one count more than there are bounds.

    Inside a bucket all is taken to be even, as Prometheus does; beyond the last bound it is that bound. None where
    there is nothing.
    """
    # Processes are read one after the other, so that a larger bound may seem to have less: it never does here.
    counts = list(accumulate(cumulative, max))
    if not counts or counts[-1] <= 0 or not bounds:
        return None
    rank = part * counts[-1]
    at = bisect_left(counts, rank)
    if at >= len(bounds):
        return bounds[-1]
    low = bounds[at - 1] if at else 0.0
    under = counts[at - 1] if at else 0.0
    inside = counts[at] - under
    return low + (bounds[at] - low) * ((rank - under) / inside if inside else 0.0)
