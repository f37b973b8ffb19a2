"""Cache costs: seconds of a call at one place, with what its cache is expected to save. Pure.

    seconds = wait + prefill of what is not read + dollar_seconds x dollars
    dollars = belief x (dollars if the cache has it) + (1 - belief) x (dollars if not)

So a warm account is left only where waiting for it costs more than reading the prompt anew elsewhere.
"""

from typing import Final

from smg_node.engines.http.vendor_cache import CacheCost, Dollars
from smg_node.providers.affinity.cache_forecast import Forecast

TOKEN_S: Final = 1e-4
"""What a token that is not read adds to the time until the first word: vendors take about 10 s for 100,000. It is the
same for all of them, so that where nothing else differs weights decide.
"""


def dollars_of(one: Forecast, price: Dollars) -> float:
    """Return what a call is expected to cost."""
    prompt, cached = round(one.prompt), round(one.cached)
    if not one.belief:
        return price(prompt, 0, min(prompt, round(one.cached + one.written)))
    warm = price(prompt, min(prompt, cached), round(one.written))
    cold = price(prompt, 0, min(prompt, round(one.cached + one.written)))
    return one.belief * warm + (1.0 - one.belief) * cold


def cost_of(one: Forecast, *, dollar_seconds: float, price: Dollars | None) -> CacheCost:
    """Return what a call comes to at one place; without a price its dollars count nothing."""
    left = max(0.0, one.prompt - one.read)
    seconds = one.place.wait_s + left * TOKEN_S
    if price is None:
        return CacheCost(seconds, one.read)
    dollars = dollars_of(one, price)
    return CacheCost(seconds + dollar_seconds * dollars, one.read, dollars)
