"""Shortening of a failing history: drops faults one by one while a promise is still broken."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from smg_chaos.simulate.outcome import Outcome
from smg_chaos.simulate.random_faults import Plan

TRIES_MAX: Final = 150


def shortened(
    plan: Plan, attempt: Callable[[Plan], Outcome], *, tries_max: int = TRIES_MAX
) -> tuple[Plan, Outcome, int]:
    """Drop faults one by one as long as some promise is still broken.

    Return the plan that is left, what becomes of it, and how many histories that took. When none of the
    remaining faults can be dropped alone, or after `tries_max` histories, it is done.
    """
    outcome = attempt(plan)
    tries = 1
    place = 0
    kept_in_a_row = 0
    while outcome.broken and plan.faults and kept_in_a_row < len(plan.faults) and tries < tries_max:
        place %= len(plan.faults)
        fewer = replace(plan, faults=plan.faults[:place] + plan.faults[place + 1 :])
        without = attempt(fewer)
        tries += 1
        if without.broken:
            plan, outcome, kept_in_a_row = fewer, without, 0
        else:
            place += 1
            kept_in_a_row += 1
    return plan, outcome, tries
