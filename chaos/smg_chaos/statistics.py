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
    """One number. `value` None: it was never measured. `limit`: the most it may be, `least`: the
    least; None: it has no such target. `stretch` is a target beyond that, without a verdict, and
    `before` what was measured before the target was set.
    """

    metric: str
    value: float | None
    unit: Unit = ""
    limit: float | None = None
    says: str = ""
    least: float | None = None
    stretch: float | None = None
    before: str = ""

    @property
    def has_target(self) -> bool:
        """Whether there is something to be met."""
        return self.limit is not None or self.least is not None

    @property
    def is_met(self) -> bool:
        """Whether it keeps its targets; a figure without one always does."""
        if self.value is None:
            return not self.has_target
        kept = self.limit is None or self.value <= self.limit
        return kept and (self.least is None or self.value >= self.least)


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
