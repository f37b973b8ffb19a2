"""Claim figures: what was wrong about what clients and operators were told, with its target. Pure."""

from collections.abc import Callable
from typing import Final

from smg_chaos.gameday.limits.claims.reasons import ReasonClaims
from smg_chaos.gameday.limits.claims.remaining import RemainingClaims
from smg_chaos.gameday.limits.claims.reported_use import UseClaims
from smg_chaos.gameday.limits.claims.retries import RetryClaims
from smg_chaos.gameday.limits.trials import goals
from smg_chaos.statistics import Figure

_LINES_MAX: Final = 5


def remaining_figure(trial: str, found: RemainingClaims, say: Callable[[str], None]) -> Figure:
    """Return how many answers claim a wrong amount, or none, of what remains."""
    _show(trial, found.shown, say)
    parts = {
        "without": found.silent,
        "of another limit": found.other_limit,
        "of no window": found.misplaced,
        "rising": found.rising,
        f"off, {found.off_at_refusal} of them refusals": found.off,
    }
    says = f"of {found.looked}{_listed(parts)}; worst by {found.worst}"
    return goals.REMAINING.figure(trial, found.wrong, says)


def retry_figure(trial: str, found: RetryClaims, say: Callable[[str], None]) -> Figure:
    """Return the share of refusals that claim a wrong time, or none."""
    _show(trial, found.shown, say)
    parts = {
        "without": found.silent,
        "too short": found.too_short,
        "more than 2 s too long": found.too_long,
        "overtaken by others": found.overtaken,
    }
    says = f"of {found.refusals}, {found.returned} came back{_listed(parts)}"
    if found.refusals:
        says += f"; latest by {found.worst_late_s:.1f} s"
    return goals.RETRIES.figure(trial, round(found.wrong_percent, 2), says)


def reason_figure(trial: str, found: ReasonClaims, say: Callable[[str], None]) -> Figure:
    """Return how many refusals have no reason that may be true."""
    _show(trial, found.shown, say)
    counts = ", ".join(f"{count} {reason}" for reason, count in sorted(found.counts.items()))
    says = f"of {found.refusals}"
    says += f": {counts}; {found.untrue} untrue" if counts else ""
    return goals.REASONS.figure(trial, found.wrong, says)


def use_figure(trial: str, found: UseClaims, say: Callable[[str], None]) -> Figure:
    """Return how many reports of the limit's use are wrong."""
    _show(trial, found.shown, say)
    parts = {
        "of nothing yet": found.empty,
        "that do not add up": found.sums,
        "with another number spent": found.spent,
        "not exact without a reason": found.unexplained,
    }
    says = f"of {found.looked}{_listed(parts)}; worst sum by {found.worst}"
    return goals.REPORTS.figure(trial, found.wrong, says)


def _listed(parts: dict[str, int]) -> str:
    return "".join(f", {count} {what}" for what, count in parts.items() if count)


def _show(trial: str, lines: list[str], say: Callable[[str], None]) -> None:
    for line in lines[:_LINES_MAX]:
        say(f"{trial}: {line}")
