"""What the HTTP surface shows of what all nodes count, and whom it asks."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec


class NumberRow(msgspec.Struct, frozen=True):
    """One series: the values of the labels that its metric has, and its number.

    Of a histogram there are several numbers: how many were not above each bound, how many there were, and their sum.
    """

    labels: Sequence[str]
    values: Sequence[float]


class NodeNumbers(msgspec.Struct, frozen=True):
    """What one node counts. `at_s` is the reading of its own clock, which only differences mean something of.

    `rows` are by the metric's name; `cut` counts what was too much for one answer.
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
    """What all nodes say, by name. `silent` did not answer, and why."""

    nodes: Mapping[str, NodeNumbers]
    silent: Mapping[str, str]


class MetricsService(Protocol):
    """What is counted in the whole cluster."""

    async def numbers(self, names: Collection[str]) -> ClusterNumbers:
        """Ask all living nodes for the metrics of these names; OVERLOADED if too many ask at the same time."""
        ...
