"""Statistics of a scenario: named figures with the targets they have to meet, percentiles and
medians.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["s", "", "B/s", "packets/s", "%", "MB", "per 60 s"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `value` None: it was never measured. `limit`: the most it may be; None: it has no
    target.
    """

    metric: str
    value: float | None
    unit: Unit = ""
    limit: float | None = None
    says: str = ""

    @property
    def is_met(self) -> bool:
        """Whether it keeps its target; a figure without one always does."""
        return self.limit is None or (self.value is not None and self.value <= self.limit)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of the values that at least this share of them does not exceed."""
    assert values
    assert 0 < share <= 1
    return sorted(values)[math.ceil(share * len(values)) - 1]


def times(
    metric: str,
    values: Sequence[float | None],
    *,
    p50_max: float | None = None,
    p99_max: float | None = None,
) -> list[Figure]:
    """Return median and 99th percentile of durations in seconds; None among them is one that never
    ended.
    """
    missing = sum(value is None for value in values)
    came = [math.inf if value is None else value for value in values]
    says = f"{missing} of {len(values)} never" if missing else ""
    figures = []
    for name, share, limit in (("p50", 0.5, p50_max), ("p99", 0.99, p99_max)):
        value = percentile(came, share)
        kept = None if math.isinf(value) else value
        figures.append(Figure(f"{metric}, {name}", kept, "s", limit, says))
    return figures
