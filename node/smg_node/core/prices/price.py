"""Price of a model: what its tokens and calls cost, by length of the prompt, service tier and day. Pure.

    price = periods by first day, each = steps by length of the prompt, and the same for each service tier

All amounts are whole numbers of a millionth of a millionth of the currency (*pico*): what a million tokens cost in
millionths is what one token costs in these, so that no sum is ever rounded. A step counts for the whole call: who sends
more than `above` tokens pays its rates for all of them, as vendors have it.
"""

from collections.abc import Mapping
from datetime import date
from typing import Final

import msgspec

PICO: Final = 1_000_000_000_000
"""Of one unit of the currency."""
PICO_PER_MICRO: Final = 1_000_000
_USUAL_TIERS: Final = frozenset(("", "auto", "default", "standard", "standard_only", "on_demand"))
_TIER_NAMES: Final[Mapping[str, str]] = {
    "batches": "batch",
    "on_demand_flex": "flex",
    "on_demand_priority": "priority",
}
"""Names of one tier at several vendors."""


class Rates(msgspec.Struct, frozen=True, gc=False):
    """What counts for one call, in pico: a token each, `per_call` once, `tools` each time one is used."""

    prompt: int = 0
    cached: int = 0
    written: int = 0
    written_long: int = 0
    answer: int = 0
    per_call: int = 0
    tools: tuple[tuple[str, int], ...] = ()


class Step(msgspec.Struct, frozen=True, gc=False):
    """Rates of calls whose prompt has more than `above` tokens."""

    above: int
    rates: Rates


class Period(msgspec.Struct, frozen=True):
    """Prices from a day on, counted from 1970-01-01. Steps ascend, and the first is above -1: for every prompt."""

    first_day: int
    steps: tuple[Step, ...]
    tiers: Mapping[str, tuple[Step, ...]] = {}


class Price(msgspec.Struct, frozen=True):
    """Prices of one model, by day; the periods ascend. Before the first of them nothing is known."""

    periods: tuple[Period, ...]

    @property
    def plain(self) -> bool:
        """Whether it is the same for every call, whatever its length, tier and day."""
        first = self.periods[0]
        return len(self.periods) == 1 and len(first.steps) == 1 and not first.tiers


def flat_price(rates: Rates) -> Price:
    """Return the price that is the same for every call."""
    return Price((Period(0, (Step(-1, rates),)),))


def pico_of(amount: float) -> int:
    """Return an amount of the currency, of a million tokens, as pico of a token."""
    return round(amount * PICO_PER_MICRO)


def tier_name(said: str) -> str:
    """Return the name under which prices have a tier that a vendor or a client names; "" for the usual one."""
    name = said.strip().lower()
    return "" if name in _USUAL_TIERS else _TIER_NAMES.get(name, name)


def day_of(now_ms: int) -> int:
    """Return the UTC day of a moment in Unix milliseconds, counted from 1970-01-01."""
    return now_ms // 86_400_000


def day_number(said: date) -> int:
    """Return a date, counted from 1970-01-01."""
    return (said - date(1970, 1, 1)).days
