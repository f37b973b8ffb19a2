"""Cache costs: seconds of a call at one place, with what its cache is expected to save. Pure.

    seconds = wait + prefill of what is not read + dollar_seconds x dollars
    dollars = belief x (dollars if the cache has it) + (1 - belief) x (dollars if not)

So a warm account is left only where waiting for it costs more than reading the prompt anew elsewhere.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from smg_node.providers.affinity.cache_outlook import Outlook

TOKEN_S: Final = 1e-4
"""What a token that is not read adds to the time until the first word: vendors take about 10 s for 100,000. It is the
same for all of them, so that where nothing else differs weights decide.
"""

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


def cost_s(one: Outlook, *, dollar_seconds: float, dollars: float) -> float:
    """Return the cost of a call at one place, in seconds."""
    left = max(0.0, one.prompt - one.read)
    return one.place.wait_s + left * TOKEN_S + dollar_seconds * dollars


def best_of(several: Sequence[Outlook], cost: Callable[[Outlook], float]) -> tuple[Outlook, float]:
    """Return the place of a target that costs least, the first of equals, and its cost; `several` is not empty."""
    costs = [cost(one) for one in several]
    at = costs.index(min(costs))
    return several[at], costs[at]
