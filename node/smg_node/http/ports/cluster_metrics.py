"""Cluster metrics port: metrics of all nodes, as the HTTP surface reads them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec


class NumberRow(msgspec.Struct, frozen=True):
    """One series: the values of the labels that its metric has, and its number.

    A histogram has several numbers: the cumulative count of each bucket, the total count, and the
    sum.
    """

    labels: Sequence[str]
    values: Sequence[float]


class NodeNumbers(msgspec.Struct, frozen=True):
    """Metrics of one node. `at_s` is its own monotonic clock, of which only differences are
    meaningful.

    `rows` are by the metric's name; `cut` counts rows that were too many for one answer.
    """

    version: str
    at_s: float
    ready: bool
    draining: bool
    reasons: Sequence[str]
    degraded: Sequence[str]
    rows: Mapping[str, Sequence[NumberRow]]
    cut: int = 0


class ClusterNumbers(msgspec.Struct, frozen=True):
    """Metrics of all nodes, by name. `silent` are those that did not answer, with the reason."""

    nodes: Mapping[str, NodeNumbers]
    silent: Mapping[str, str]


class MetricsService(Protocol):
    """Metrics of the whole cluster."""

    async def numbers(self, names: Collection[str]) -> ClusterNumbers:
        """Ask all living nodes for the metrics of these names; OVERLOADED if too many ask at the same time."""
        ...
