"""Cost of a call: its tokens at the rates that count for it, exact, expected or at most. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from smg_node.core.generation.events import Usage
from smg_node.core.prices.price import PICO, PICO_PER_MICRO, Period, Price, Rates, Step, tier_name

ALL_TIERS: Final = "*"
"""In place of a tier where the vendor chooses."""


def rates_of(price: Price, *, prompt: int, tier: str = "", day: int) -> Rates | None:
    """Return the rates of a call with so long a prompt, on that day; None before the first of the price's days.

    A tier that the price does not name costs what the usual one does.
    """
    period = _period(price, day)
    if period is None:
        return None
    name = tier_name(tier)
    return _step(period.tiers.get(name, period.steps) if name else period.steps, prompt)


def cost_pico(rates: Rates, used: Usage) -> int:
    """Return what a call cost, in pico. Cached and written tokens are parts of the prompt's, and counted once."""
    cached = min(used.cached_tokens, used.prompt_tokens)
    written = min(used.cache_write_tokens, used.prompt_tokens - cached)
    long = min(used.cache_write_long_tokens, written)
    pico = (
        (used.prompt_tokens - cached - written) * rates.prompt
        + cached * rates.cached
        + (written - long) * rates.written
        + long * rates.written_long
        + used.completion_tokens * rates.answer
        + rates.per_call
    )
    if rates.tools and used.server_tools:
        each = dict(rates.tools)
        pico += sum(each.get(name, 0) * times for name, times in used.server_tools)
    return pico


def call_pico(price: Price | None, used: Usage, *, tier: str = "", day: int) -> int | None:
    """Return what a call cost, in pico: what its vendor said, else by the price; None if neither is known.

    `tier` is what was asked for, and counts where the vendor says none.
    """
    if used.cost_pico is not None:
        return used.cost_pico
    if price is None:
        return None
    rates = rates_of(price, prompt=used.prompt_tokens, tier=used.service_tier or tier, day=day)
    return None if rates is None else cost_pico(rates, used)


def micro_up(pico: int) -> int:
    """Return an amount in whole millionths of the currency, rounded up: so limits are charged."""
    return -(-pico // PICO_PER_MICRO)


def expected_dollars(
    price: Price,
    *,
    prompt: int,
    cached: int = 0,
    written: int = 0,
    answer: int = 0,
    tier: str = "",
    day: int,
) -> float:
    """Return what a call is expected to cost, in the currency; infinity before the first of the price's days.

    `cached` and `written` are parts of `prompt`, in tokens.
    """
    rates = rates_of(price, prompt=prompt, tier=tier, day=day)
    if rates is None:
        return float("inf")
    fresh = prompt - cached - written
    pico = fresh * rates.prompt + cached * rates.cached + written * rates.written
    return (pico + answer * rates.answer + rates.per_call) / PICO


def dearest(price: Price, *, prompt_max: int, tier: str = "", day: int) -> Rates | None:
    """Return rates that no call of at most so long a prompt exceeds; None before the first of the price's days.

    Of an input token it is the most of new, read and written. Tools that the vendor runs are not in it: nobody knows
    beforehand how often. `ALL_TIERS` is the dearest of all.
    """
    period = _period(price, day)
    if period is None:
        return None
    name = tier_name(tier)
    steps = list(period.steps)
    for known, its in period.tiers.items():
        if name in (ALL_TIERS, known):
            steps += its
    met = [step.rates for step in steps if step.above < max(prompt_max, 0)]
    return most_of(met or [steps[0].rates])


def most_of(several: Iterable[Rates]) -> Rates:
    """Return rates that none of several exceeds, with one rate for all of the prompt; `several` is not empty."""
    all_rates = list(several)
    prompt = max(
        rate
        for one in all_rates
        for rate in (one.prompt, one.cached, one.written, one.written_long)
    )
    return Rates(
        prompt,
        prompt,
        prompt,
        prompt,
        max(one.answer for one in all_rates),
        max(one.per_call for one in all_rates),
    )


def _period(price: Price, day: int) -> Period | None:
    found: Period | None = None
    for period in price.periods:
        if period.first_day > day:
            break
        found = period
    return found


def _step(steps: Sequence[Step], prompt: int) -> Rates:
    rates = steps[0].rates
    for step in steps[1:]:
        if prompt <= step.above:
            break
        rates = step.rates
    return rates
