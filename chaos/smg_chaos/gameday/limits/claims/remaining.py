"""Remaining claims: `x-ratelimit-remaining-*` against the limit minus all that the cluster has
admitted. Pure.

A claim is made at some moment between the sending of a request and the end of its answer. Its own
charge, and those of all answers of the same node that claim as much or more, came before it: an
answer is written after its request was charged. What other nodes admitted in the last 250 ms need
not be known. A claim is off if, for all that, it is further from the truth than 5 % of the limit,
or two units.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.gameday.limits.claims.admissions import NEWS_US, Admissions, tolerance
from smg_chaos.gameday.limits.clients.header_checks import risen, window_of
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer
from smg_chaos.gameday.limits.story import ADMITTED, REFUSED

_SLACK_US: Final = 100_000
_SECOND_US: Final = 1_000_000
"""A reset is told in whole seconds, rounded up."""
_SHOWN_MAX: Final = 20


@dataclass
class RemainingClaims:
    """Results: how many answers were looked at, and how many of them are wrong, by what is wrong."""

    looked: int = 0
    silent: int = 0
    """Answers without these headers."""
    other_limit: int = 0
    """Answers that name another amount than that of the limit."""
    misplaced: int = 0
    """Answers whose window does not end where windows end."""
    rising: int = 0
    off: int = 0
    off_at_refusal: int = 0
    """How many of those that are off are refusals."""
    worst: int = 0
    """The largest distance of a claim from the truth, in units."""
    wrong_serials: set[int] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """How many answers have a wrong claim, each once."""
        return len(self.wrong_serials)

    def show(self, answer: Answer, what: str) -> None:
        """Keep a wrong answer."""
        self.wrong_serials.add(answer.serial)
        if len(self.shown) < _SHOWN_MAX:
            self.shown.append(
                f"node {answer.node}, request {answer.serial} ({answer.status}): {what}"
            )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and most that may truly have remained for a client when an answer was made."""

    least: int
    most: int

    def distance(self, claim: int) -> int:
        """Return how far a claim is from what is possible; 0 inside, positive above, negative
        below.
        """
        if claim > self.most:
            return claim - self.most
        return min(0, claim - self.least)


def check_remaining(
    answers: Iterable[Answer], admissions: Admissions, amount: int
) -> RemainingClaims:
    """Return the results of checking the answers about a limit of `amount` a window."""
    found = RemainingClaims()
    rows: dict[tuple[int, int], list[Answer]] = {}
    for answer in answers:
        if answer.status not in (ADMITTED, REFUSED):
            continue
        found.looked += 1
        if UNKNOWN in (answer.limit, answer.remaining, answer.reset_ms):
            found.silent += 1
            found.show(answer, "says nothing of what is left")
            continue
        if answer.limit != amount:
            found.other_limit += 1
            found.show(answer, f"says that the limit is {answer.limit}")
        window = window_of(answer, admissions.window_us)
        if window is None or not _ends_at_border(answer, window, admissions.window_us):
            found.misplaced += 1
            found.show(answer, f"says that its window ends in {answer.reset_ms} ms")
            continue
        rows.setdefault((answer.node, window), []).append(answer)
    for (_, window), row in rows.items():
        for answer, before in risen(row):
            found.rising += 1
            found.show(answer, f"says {answer.remaining} after {before}")
        _check_row(row, window, admissions, amount, found)
    return found


def _ends_at_border(answer: Answer, window: int, window_us: int) -> bool:
    """Whether the reset of an answer may lead to the end of this window."""
    border_us = (window + 1) * window_us
    reset_us = answer.reset_ms * 1000
    early_us, late_us = answer.sent_us + reset_us, answer.got_us + reset_us
    rounding_us = _SECOND_US if answer.reset_ms >= 1000 else 0
    return early_us - rounding_us - _SLACK_US <= border_us <= late_us + _SLACK_US


def _check_row(
    row: list[Answer], window: int, admissions: Admissions, amount: int, found: RemainingClaims
) -> None:
    """Check the answers of one node about one window."""
    slack = tolerance(amount)
    rank = 0
    for answer in sorted(row, key=lambda one: (-one.remaining, one.sent_us, one.serial)):
        rank += answer.status == ADMITTED
        bounds = bounds_of(answer, window, admissions, amount, rank)
        away = bounds.distance(answer.remaining)
        found.worst = max(found.worst, abs(away))
        if abs(away) > slack:
            found.off += 1
            found.off_at_refusal += answer.status == REFUSED
            truth = f"{bounds.least} to {bounds.most}"
            found.show(answer, f"says {answer.remaining} where {truth} remained")


def bounds_of(
    answer: Answer, window: int, admissions: Admissions, amount: int, rank: int = 0
) -> Bounds:
    """Return what may truly have remained of a window when an answer was made.

    `rank`: how many admitted answers of the node claim as much as this one or more, itself
    included.
    """
    mine = [answer.node]
    others = [node for node in admissions.nodes if node != answer.node]
    most_here = admissions.most(window, answer.got_us, mine)
    least_here = admissions.least(window, answer.sent_us, mine) + (answer.status == ADMITTED)
    least_here = min(max(least_here, rank), most_here)
    least_there = admissions.least(window, answer.sent_us - NEWS_US, others)
    most_there = admissions.most(window, answer.got_us, others)
    return Bounds(
        max(0, amount - most_here - most_there), max(0, amount - least_here - least_there)
    )
