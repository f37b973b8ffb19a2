"""Reason claims: why a request was refused, counted, and `used_up` where more was admitted
afterwards. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.gameday.limits.claims.admissions import Admissions
from smg_chaos.gameday.limits.clients.client_connection import REASONS
from smg_chaos.gameday.limits.clients.header_checks import window_of
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer
from smg_chaos.gameday.limits.story import REFUSED

USED_UP: Final = "used_up"
_SHOWN_MAX: Final = 20


@dataclass
class ReasonClaims:
    """Results: refusals by reason ("none" where there is none), and those that cannot be true."""

    counts: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    """Refusals with no reason, or with a word that is none."""
    untrue: int = 0
    """Refusals that say `used_up` of a window to which a later request was charged."""
    shown: list[str] = field(default_factory=list)

    @property
    def refusals(self) -> int:
        """How many refusals there were."""
        return sum(self.counts.values())

    @property
    def wrong(self) -> int:
        """How many refusals have no reason that may be true."""
        return self.unknown + self.untrue


def check_reasons(answers: Iterable[Answer], admissions: Admissions) -> ReasonClaims:
    """Return the results of checking the reasons of the refusals."""
    found = ReasonClaims()
    for answer in answers:
        if answer.status != REFUSED:
            continue
        reason = answer.reason or "none"
        found.counts[reason] = found.counts.get(reason, 0) + 1
        if reason not in REASONS:
            found.unknown += 1
        elif reason == USED_UP and (later := _later(answer, admissions)):
            found.untrue += 1
            if len(found.shown) < _SHOWN_MAX:
                found.shown.append(
                    f"node {answer.node}, request {answer.serial}: says {reason}, and"
                    f" {later} that were sent later were admitted in that window"
                )
    return found


def _later(answer: Answer, admissions: Admissions) -> int:
    window = window_of(answer, admissions.window_us) if answer.reset_ms != UNKNOWN else None
    return 0 if window is None else admissions.sent_later(window, answer.got_us)
