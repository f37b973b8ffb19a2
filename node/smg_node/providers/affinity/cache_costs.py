"""Cache costs: seconds of a call at one place, with what its cache is expected to save. Pure.

    seconds = wait + prefill of what is not read + dollar_seconds x dollars
    dollars = belief x (dollars if the cache has it) + (1 - belief) x (dollars if not)

So a warm account is left only where waiting for it costs more than reading the prompt anew elsewhere.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from smg_node.providers.affinity.cache_outlook import Outlook

Dollars: TypeAlias = Callable[[int, int, int], float]
"""Returns what a prompt costs of which so many tokens are read, and so many written: (prompt, read, written)."""


def dollars_of(one: Outlook, price: Dollars | None) -> float:
    """Return what the prompt of a call is expected to cost; 0.0 without a price."""
    if price is None:
        return 0.0
    prompt, cached = round(one.prompt), round(one.cached)
    if not one.belief:
        return price(prompt, 0, min(prompt, round(one.cached + one.written)))
    warm = price(prompt, min(prompt, cached), round(one.written))
    cold = price(prompt, 0, min(prompt, round(one.cached + one.written)))
    return one.belief * warm + (1.0 - one.belief) * cold


def cost_s(
    one: Outlook, *, base_s: float, prefill_s: float, dollar_seconds: float, dollars: float
) -> float:
    """Return the cost of a call at one place, in seconds. `prefill_s` is the time of one token that is not read."""
    left = max(0.0, one.prompt - one.read)
    return base_s + one.place.wait_s + left * prefill_s + dollar_seconds * dollars


def best_of(several: Sequence[Outlook], cost: Callable[[Outlook], float]) -> tuple[Outlook, float]:
    """Return the place of a target that costs least, the first of equals, and its cost; `several` is not empty."""
    costs = [cost(one) for one in several]
    at = costs.index(min(costs))
    return several[at], costs[at]
