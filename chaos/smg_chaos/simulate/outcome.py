"""Outcome of one history: broken promises, figures, and what it cost to compute."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Figures: TypeAlias = dict[str, list[float]]
"""What was measured, by name; a name ends with its unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one history, which its seed repeats."""

    seed: int
    broken: tuple[str, ...] = ()
    figures: Figures = field(default_factory=dict)
    events: int = 0
    cpu_s: float = 0.0
    fingerprint: str = ""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of all values do not exceed; nan of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "p50": lambda values: percentile(values, 0.5),
    "p99": lambda values: percentile(values, 0.99),
    "max": lambda values: max(values, default=math.nan),
    "mean": lambda values: sum(values) / len(values) if values else math.nan,
    "sum": lambda values: float(sum(values)),
}


def gathered(outcomes: Sequence[Outcome]) -> Figures:
    """Return all figures of many histories, name by name."""
    together: Figures = {}
    for outcome in outcomes:
        for name, values in outcome.figures.items():
            together.setdefault(name, []).extend(values)
    return together
