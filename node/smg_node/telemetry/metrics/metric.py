"""Metric declaration, from which its series and its line in the reference are made."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]
Merge: TypeAlias = Literal["sum", "max", "min", "control"]
"""What a gauge is of a node of several processes: their sum, the largest, the smallest, or what the control process says."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. Counters end in `_total`; units are part of the name.

    A *pulled* metric has no series of its own: its value is read from the part that owns it at
    scrape time.
    """

    name: str
    kind: MetricKind
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    pulled: bool = False
    merge: Merge = "sum"
