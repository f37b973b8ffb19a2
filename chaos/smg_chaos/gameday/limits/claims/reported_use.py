"""Reported use of a limit, as `GET /v1/cluster/limits/{scope}` has it: do its numbers add up, and
are they true? Pure.

What is spent, what remains and what is unavailable, each with a reason, make up the limit, but while
requests are admitted for those and for rights that move, since nodes are asked one after the other.
What is spent is what was admitted. A report that calls itself not exact says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from smg_chaos.gameday.limits.claims.admissions import NEWS_US, Admissions, tolerance

_SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A report, with when it was asked for and when it had come."""

    asked_us: int
    came_us: int
    content: Mapping[str, Any]


@dataclass
class UseClaims:
    """Results: how many reports were looked at, and how many are wrong, by what is wrong."""

    looked: int = 0
    empty: int = 0
    """Reports of a limit that nobody has used yet: there is nothing to add up."""
    sums: int = 0
    """Reports that do not add up to the limit."""
    spent: int = 0
    """Reports with another number of spent units than was admitted."""
    unexplained: int = 0
    """Reports that call themselves not exact and do not say why."""
    wrong: int = 0
    worst: int = 0
    """The largest number of units missing from a sum, or too many in it."""
    shown: list[str] = field(default_factory=list)


def missing(use: Mapping[str, Any]) -> int:
    """Return how many units of the limit a report accounts for nowhere; negative: too many."""
    told = int(use["spent"]) + int(use["remaining"])
    named = sum(int(one["amount"]) for one in use["unavailable"])
    return int(use["amount"]) + int(use["over"]) - told - named


def is_explained(content: Mapping[str, Any]) -> bool:
    """Whether a report is exact, or says why it is not."""
    return bool(content["exact"] or content["inexact_reasons"])


def check_use(samples: Sequence[Sample], admissions: Admissions) -> UseClaims:
    """Return the results of checking these reports of one limit."""
    found = UseClaims()
    for sample in samples:
        uses: Sequence[Mapping[str, Any]] = sample.content["uses"]
        found.looked += 1
        if not uses:
            found.empty += 1
            continue
        faults = [fault for use in uses for fault in _faults(use, sample, admissions, found)]
        if not is_explained(sample.content):
            found.unexplained += 1
            faults.append("is not exact, and does not say why")
        if faults:
            found.wrong += 1
            if len(found.shown) < _SHOWN_MAX:
                found.shown.append("; ".join(faults))
    return found


def _faults(
    use: Mapping[str, Any], sample: Sample, admissions: Admissions, found: UseClaims
) -> list[str]:
    faults = []
    window, slack = int(use["window"]), tolerance(int(use["amount"]))
    least = admissions.least(window, sample.asked_us - NEWS_US)
    most = admissions.most(window, sample.came_us)
    gap = missing(use)
    found.worst = max(found.worst, abs(gap))
    spent, left, named = use["spent"], use["remaining"], len(use["unavailable"])
    if abs(gap) > (slack + most - least if most > least else 0):
        found.sums += 1
        faults.append(
            f"spent {spent} + {left} that remain + {named} parts that do not: not {use['amount']}"
        )
    if not least - slack <= spent <= most + slack:
        found.spent += 1
        faults.append(f"spent {spent} where {least} to {most} were admitted")
    return faults
