"""Retry claims: the `Retry-After` of each refusal against when its node admitted again. Pure.

Too short: the client came back when told, and was refused again. That is no fault of the claim if
the limit was not used up when it was made and was used up by others meanwhile, or if that happened
in another window.

Too long: it names a moment more than 2 s after the next admission that was possible at this node:
the arrival of a request that was sent there after the refusal had come, or the beginning of the
next window, whichever is first. A claim in whole seconds is allowed its rounding.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.gameday.limits.claims.admissions import Admissions
from smg_chaos.gameday.limits.clients.header_checks import window_of
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer
from smg_chaos.gameday.limits.story import REFUSED

LATE_US: Final = 2_000_000
_SHOWN_MAX: Final = 20


@dataclass
class RetryClaims:
    """Results: how many refusals there were, and how many claims of theirs are wrong, and how."""

    refusals: int = 0
    silent: int = 0
    returned: int = 0
    """Refusals whose client came back when told."""
    too_short: int = 0
    overtaken: int = 0
    """Refused again because others had used up the limit in the meantime: no wrong claims."""
    too_long: int = 0
    worst_late_s: float = 0.0
    """How long after the next possible admission the worst claim names."""
    wrong_serials: set[int] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """How many refusals make a wrong claim, or none."""
        return len(self.wrong_serials)

    @property
    def wrong_percent(self) -> float:
        """Share of the refusals with a wrong claim, in per cent."""
        return 100 * self.wrong / self.refusals if self.refusals else 0.0

    def show(self, answer: Answer, what: str) -> None:
        """Keep a wrong refusal."""
        self.wrong_serials.add(answer.serial)
        if len(self.shown) < _SHOWN_MAX:
            told = f"told {answer.retry_ms} ms ({answer.reason or 'no reason'})"
            self.shown.append(f"node {answer.node}, request {answer.serial}: {told}, {what}")


def check_retries(answers: Iterable[Answer], admissions: Admissions, amount: int) -> RetryClaims:
    """Return the results of checking the refusals of a limit of `amount` a window."""
    found = RetryClaims()
    known = sorted(answers, key=lambda one: (one.sent_us, one.serial))
    returns = {one.follows: one for one in known if one.follows != UNKNOWN}
    for refusal in known:
        if refusal.status != REFUSED:
            continue
        found.refusals += 1
        if refusal.retry_ms == UNKNOWN:
            found.silent += 1
            found.show(refusal, "which is nothing")
            continue
        _check_length(refusal, admissions, found)
        back = returns.get(refusal.serial)
        if back is not None:
            found.returned += 1
            _check_return(refusal, back, admissions, amount, found)
    return found


def _window(answer: Answer, admissions: Admissions) -> int:
    """Return the window an answer is about: the one whose end it names, or else that of its time."""
    said = window_of(answer, admissions.window_us) if answer.reset_ms != UNKNOWN else None
    return admissions.window(answer.sent_us) if said is None else said


def _check_length(refusal: Answer, admissions: Admissions, found: RetryClaims) -> None:
    border_us = (_window(refusal, admissions) + 1) * admissions.window_us
    came_us = admissions.next_us(refusal.node, refusal.got_us)
    possible_us = border_us if came_us is None else min(border_us, came_us)
    rounding_us = refusal.rounded_ms * 1000
    late_us = refusal.sent_us + refusal.retry_ms * 1000 - rounding_us - possible_us
    found.worst_late_s = max(found.worst_late_s, late_us / 1e6)
    if late_us > LATE_US:
        found.too_long += 1
        found.show(refusal, f"{late_us / 1e6:.1f} s later than the next admission was possible")


def _check_return(
    refusal: Answer, back: Answer, admissions: Admissions, amount: int, found: RetryClaims
) -> None:
    if back.status != REFUSED:
        return
    window, again = _window(refusal, admissions), _window(back, admissions)
    was_used_up = again == window and admissions.least(window, refusal.sent_us) >= amount
    if not was_used_up and admissions.most(again, back.got_us) >= amount:
        found.overtaken += 1
        return
    found.too_short += 1
    waited_s = (back.sent_us - refusal.got_us) / 1e6
    found.show(refusal, f"came back after {waited_s:.1f} s and was refused again")
