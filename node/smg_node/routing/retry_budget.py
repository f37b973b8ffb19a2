"""Retry budget: limits retries of failed calls to a share of requests, with full-jitter backoff
between them. Pure.

Retries help against one bad worker and hurt when all are full: each of them is more load. So they have a
budget, a share of what clients ask for plus a few a second, and where it is used up an error goes to the
client at once. Pauses grow, and are drawn from zero on (full jitter), so that calls which failed together
do not come back together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from smg_node.core.ports import Rng
from smg_node.core.sliding_window import Window

BACKOFF_FIRST_S: Final = 0.05
BACKOFF_MOST_S: Final = 2.0
_DOUBLINGS_MAX: Final = 30
LATE_MAX: Final = 64
"""So many requests are counted together."""


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """Limit of attempts in all, the retry budget, and the pauses before retries, in seconds.

    `continuations` is how often an answer that has begun goes on elsewhere.
    """

    attempts: int = 3
    continuations: int = 2
    share: float = 0.2
    floor_per_s: float = 3.0
    window_s: float = 10.0
    first_s: float = BACKOFF_FIRST_S
    most_s: float = BACKOFF_MOST_S


class RetryBudget:
    """Retry budget of one model: `share` of the requests of the last `window_s`, and a floor."""

    def __init__(
        self, share: float = 0.2, floor_per_s: float = 3.0, window_s: float = 10.0
    ) -> None:
        self.share = share
        self.floor_per_s = floor_per_s
        self.taken = 0
        """Retries that were allowed."""
        self.refused = 0
        """Retries for which nothing was left."""
        self._window_s = window_s
        self.late: list[float] = []
        """When requests came that are not counted yet, `LATE_MAX` at most: hardly anybody ever wants a retry."""
        self._asked = Window(window_s)
        self._taken = Window(window_s)

    def asked(self, now_s: float) -> None:
        """Count a request of a client, before its first attempt."""
        self.late.append(now_s)
        if len(self.late) >= LATE_MAX:
            self.settle()

    def take(self, now_s: float) -> bool:
        """Whether one more retry may be made now; it is counted if so."""
        self.settle()
        allowed = self.share * self._asked.total(now_s) + self.floor_per_s * self._window_s
        if self._taken.total(now_s) + 1 > allowed:
            self.refused += 1
            return False
        self._taken.add(now_s)
        self.taken += 1
        return True

    def settle(self) -> None:
        """Count those that are late."""
        self._asked.add_all(self.late)
        self.late.clear()


class RetryBudgets:
    """One budget a model, made when it is first wanted; `known` says which models are still served."""

    def __init__(
        self, options: RetryOptions, *, known: Callable[[str], bool] = lambda model: True
    ) -> None:
        self.options = options
        self._known = known
        self._budgets: dict[str, RetryBudget] = {}

    def of(self, model: str) -> RetryBudget:
        """Return the budget of a served model, by its own name and not an alias."""
        found = self._budgets.get(model)
        if found is None:
            # A new model is seldom: the time to drop those that are not served any more.
            self._budgets = {
                name: budget for name, budget in self._budgets.items() if self._known(name)
            }
            options = self.options
            found = RetryBudget(options.share, options.floor_per_s, options.window_s)
            self._budgets[model] = found
        return found

    def asked(self, model: str, now_s: float) -> RetryBudget:
        """Count a request to a served model; return its budget."""
        budget = self._budgets.get(model) or self.of(model)
        late = budget.late
        late.append(now_s)
        if len(late) >= LATE_MAX:
            budget.settle()
        return budget

    def retune(self, options: RetryOptions) -> None:
        """Take new options; the window stays what it was."""
        self.options = options
        for budget in self._budgets.values():
            budget.share, budget.floor_per_s = options.share, options.floor_per_s

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return for each model how many retries were allowed and how many were refused."""
        return {
            model: (budget.taken, budget.refused) for model, budget in sorted(self._budgets.items())
        }


def backoff_s(
    attempt: int,
    rng: Rng,
    *,
    first_s: float = BACKOFF_FIRST_S,
    most_s: float = BACKOFF_MOST_S,
    retry_after_s: float | None = None,
) -> float:
    """Return the pause before retry number `attempt`, 1 for the first: between 0 and first_s x 2^(attempt-1).

    `retry_after_s` is what the worker that is to be called again asked for; the pause is at least that. One
    that goes elsewhere need not wait for it.
    """
    assert attempt >= 1
    span_s = min(most_s, first_s * 2.0 ** min(attempt - 1, _DOUBLINGS_MAX))
    drawn_s = span_s * rng.random()
    return drawn_s if retry_after_s is None else max(0.0, retry_after_s) + drawn_s
