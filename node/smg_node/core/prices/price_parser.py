"""Price parser: the price of a model from plain values, in units of the currency; every mistake is told. Pure.

    {prompt: 5, cached: 0.5, written: 6.25, written_long: 10, answer: 30, per_call: 0.01}    tokens by the million
    {..., steps: [{above: 272000, prompt: 10, answer: 45}]}               longer prompts: all tokens at these rates
    {..., tiers: {flex: {prompt: 2.5, answer: 15, steps: [...]}}}         by the tier that the vendor says it served
    {..., server_tools: {web_search: 0.01}}                               each time the vendor runs one
    {periods: [{prompt: 5, answer: 30}, {from: 2026-08-21, prompt: 4, answer: 20}]}

What is unsaid is as one place before: a step's as in what it belongs to, a tier's as in the usual one. In the end
`cached` and `written` are `prompt`, `written_long` is `written`, and all else is nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Final

import msgspec

from smg_node.core.errors import invalid
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.core.prices.price import PICO, Period, Price, Rates, Step, day_number, pico_of

RATE_MAX: Final = 1_000_000.0
"""A unit of currency a token is beyond any model."""
STEPS_MAX: Final = 16
TIERS_MAX: Final = 16
PERIODS_MAX: Final = 32
TOOLS_MAX: Final = 16
TOKENS_MAX: Final = 2**40
NAME_MAX: Final = 64
_PER_MILLION: Final = ("prompt", "cached", "written", "written_long", "answer")
_RATES: Final = (*_PER_MILLION, "per_call")
_STEP: Final = ("above", *_RATES)
_TIER: Final = (*_RATES, "steps")
_PERIOD: Final = ("from", *_TIER, "server_tools", "tiers")


class _Said(msgspec.Struct, frozen=True):
    """Amounts in pico, as far as they were said."""

    prompt: int | None = None
    cached: int | None = None
    written: int | None = None
    written_long: int | None = None
    answer: int | None = None
    per_call: int | None = None


def parse_price(said: object) -> Price:
    """Return a price; INVALID_REQUEST names everything that is wrong, with its path."""
    if not isinstance(said, dict):
        raise invalid(f"a price is an object with amounts, not {type(said).__name__}", "price")
    problems = Problems(strict=True)
    cursor = Cursor(said, problems)
    if "periods" in said:
        cursor.only(("periods",))
        rows = list(cursor.objects("periods", required=True, at_least=1, at_most=PERIODS_MAX))
        periods = [_period(row) for row in rows]
        for index, (before, after) in enumerate(pairwise(periods), 1):
            if after.first_day <= before.first_day:
                cursor.problem("periods", "must begin after the one before it", index=index)
    else:
        periods = [_period(cursor)]
    problems.check()
    return Price(tuple(periods))


def _period(cursor: Cursor) -> Period:
    cursor.only(_PERIOD)
    usual, tools = _said(cursor), _tools(cursor)
    steps = _steps(cursor)
    tiers: dict[str, tuple[Step, ...]] = {}
    named = cursor.object("tiers")
    for name in named.values if named is not None else ():
        assert named is not None, "it has names"
        tier = named.object(name)
        if not _is_name(name) or len(named.values) > TIERS_MAX:
            named.problem("", f"must be at most {TIERS_MAX} short names in small letters")
            break
        if tier is not None:
            tier.only(_TIER)
            own, own_steps = _said(tier), _steps(tier)
            tiers[name] = _joined(usual, steps, own, own_steps, tools)
    return Period(_first_day(cursor), _joined(usual, steps, _Said(), {}, tools), tiers)


def _joined(
    usual: _Said,
    steps: Mapping[int, _Said],
    own: _Said,
    own_steps: Mapping[int, _Said],
    tools: tuple[tuple[str, int], ...],
) -> tuple[Step, ...]:
    """Return the steps of a tier: what it says goes before what the usual one says, also for long prompts."""
    told = []
    for above in sorted({-1, *steps, *own_steps}):
        reached = (
            usual,
            *(steps[one] for one in sorted(steps) if one <= above),
            own,
            *(own_steps[one] for one in sorted(own_steps) if one <= above),
        )
        told.append(Step(above, _rates(reached, tools)))
    return tuple(told)


def _rates(layers: Sequence[_Said], tools: tuple[tuple[str, int], ...]) -> Rates:
    found: dict[str, int] = {}
    for layer in layers:
        for name in _RATES:
            value = getattr(layer, name)
            if value is not None:
                found[name] = value
    prompt = found.get("prompt", 0)
    written = found.get("written", prompt)
    return Rates(
        prompt,
        found.get("cached", prompt),
        written,
        found.get("written_long", written),
        found.get("answer", 0),
        found.get("per_call", 0),
        tools,
    )


def _said(cursor: Cursor) -> _Said:
    amounts: dict[str, int] = {}
    for name in _PER_MILLION:
        value = cursor.number(name, low=0, high=RATE_MAX)
        if value is not None:
            amounts[name] = pico_of(value)
    per_call = cursor.number("per_call", low=0, high=RATE_MAX)
    if per_call is not None:
        amounts["per_call"] = round(per_call * PICO)
    return _Said(**amounts)


def _steps(cursor: Cursor) -> dict[int, _Said]:
    found: dict[int, _Said] = {}
    for row in cursor.objects("steps", at_most=STEPS_MAX):
        row.only(_STEP)
        above = row.integer("above", low=0, high=TOKENS_MAX, required=True)
        if above is None:
            continue
        if above in found:
            row.problem("above", "is said of another step")
        found[above] = _said(row)
    return found


def _tools(cursor: Cursor) -> tuple[tuple[str, int], ...]:
    named = cursor.object("server_tools")
    if named is None:
        return ()
    found = []
    for name in sorted(named.values)[:TOOLS_MAX]:
        value = named.number(name, low=0, high=RATE_MAX)
        if value is not None:
            found.append((name[:NAME_MAX], round(value * PICO)))
    if len(named.values) > TOOLS_MAX:
        named.problem("", f"must be at most {TOOLS_MAX} tools")
    return tuple(found)


def _first_day(cursor: Cursor) -> int:
    said = cursor.raw("from")
    if said is None:
        return 0
    if isinstance(said, date):
        # YAML reads a date as one.
        return day_number(said)
    try:
        return day_number(date.fromisoformat(str(said)[:NAME_MAX]))
    except ValueError:
        cursor.problem("from", "must be a day, as 2026-08-21")
        return 0


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= NAME_MAX and name == name.lower()
