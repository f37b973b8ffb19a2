"""Table of genai-prices, its `data.json`: providers, each with models that match names by clauses. Pure.

    input_mtok, output_mtok, cache_read_mtok, cache_write_mtok, cache_write_1h_mtok     a number, or a base and steps
    requests_kcount, web_searches_kcount, storage_searches_kcount                       a thousand of them
    prices: [{prices}, {constraint: {start_date}, prices}]                              from that day on
    price_variants: [{when: {service_tier} or {processing: batch}, prices}]             a tier

Prices that count at some hours of a day only are left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from smg_node.admin.price_tables.price_row import (
    NamedModel,
    PriceRow,
    number_of,
    plain_number,
)
from smg_node.core.prices.price import tier_name

_RATES: Final[Mapping[str, str]] = {
    "input_mtok": "prompt",
    "cache_read_mtok": "cached",
    "cache_write_mtok": "written",
    "cache_write_1h_mtok": "written_long",
    "output_mtok": "answer",
}
_TOOLS: Final[Mapping[str, str]] = {
    "web_searches_kcount": "web_search",
    "storage_searches_kcount": "file_search",
}
_CALLS: Final = "requests_kcount"
_THOUSAND: Final = 1_000
_PROVIDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "claude_aws": ("anthropic",),
    "gemini": ("google",),
    "vertex": ("google",),
    "vertex_anthropic": ("google", "anthropic"),
    "claude_gcp": ("google", "anthropic"),
    "bedrock": ("aws",),
    "bedrock_invoke": ("aws",),
    "mantle": ("aws",),
    "azure": ("azure",),
    "azure_dated": ("azure",),
    "foundry": ("azure", "anthropic"),
    "xai": ("x-ai",),
}
"""Whose models a kind of provider serves, the likeliest first."""
_REGEX_CHARACTERS_MAX: Final = 512
_NAME_CHARACTERS_MAX: Final = 256


class GenaiTable:
    """The table; ValueError for what is none."""

    def __init__(self, said: object) -> None:
        providers = said.get("providers") if isinstance(said, dict) else said
        if not isinstance(providers, list) or not any(_models(one) for one in providers):
            raise ValueError("it is no table of genai-prices: a list of providers with models")
        self._providers = [one for one in providers if isinstance(one, dict)]

    def rows(self) -> Iterator[PriceRow]:
        """See `PriceTable`; a model's name stands behind its provider's."""
        for provider in self._providers:
            for model in _models(provider):
                row = _row(f"{provider.get('id')}/{model.get('id')}", model)
                if row.price:
                    yield row

    def find(self, model: NamedModel) -> PriceRow | None:
        """See `PriceTable`."""
        for provider in self._of(model):
            for one in _models(provider):
                if _matches(one.get("match"), model.model.lower()):
                    row = _row(f"{provider.get('id')}/{one.get('id')}", one)
                    return row if row.price else None
        return None

    def _of(self, model: NamedModel) -> Iterator[Mapping[str, Any]]:
        for wanted in _PROVIDERS.get(model.kind, ()):
            yield from (one for one in self._providers if one.get("id") == wanted)
        if model.kind == "openai_like" and model.base:
            for one in self._providers:
                pattern = one.get("api_pattern")
                if isinstance(pattern, str) and _searched(pattern, model.base):
                    yield one


def _models(provider: object) -> Sequence[Mapping[str, Any]]:
    models = provider.get("models") if isinstance(provider, dict) else None
    return [one for one in models if isinstance(one, dict)] if isinstance(models, list) else []


def _matches(clause: object, name: str) -> bool:
    if not isinstance(clause, dict) or len(clause) != 1 or len(name) > _NAME_CHARACTERS_MAX:
        return False
    ((how, what),) = clause.items()
    if how in ("or", "and") and isinstance(what, list):
        each = (_matches(one, name) for one in what)
        return any(each) if how == "or" else all(each)
    if not isinstance(what, str):
        return False
    match how:
        case "equals":
            return name == what
        case "starts_with":
            return name.startswith(what)
        case "ends_with":
            return name.endswith(what)
        case "contains":
            return what in name
        case "regex":
            return _searched(what, name)
        case _:
            return False


def _searched(pattern: str, text: str) -> bool:
    if len(pattern) > _REGEX_CHARACTERS_MAX:
        return False
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False


# ── One model ────────────────────────────────────────────────────────────────


def _row(name: str, model: Mapping[str, Any]) -> PriceRow:
    lost: set[str] = set()
    prices = list(_dated(model.get("prices"), lost))
    variants = [
        (day, tier, amounts)
        for one in model.get("price_variants") or ()
        for day, amounts in _dated([one], lost)
        if (tier := _tier_of(one.get("when"), lost))
    ]
    days = sorted({day for day, _ in prices} | {day for day, _, _ in variants})
    if not prices:
        return PriceRow(name, {}, tuple(sorted(lost)))
    periods: list[dict[str, Any]] = []
    for day in days:
        base = [amounts for since, amounts in prices if since <= day]
        tiers = {tier: _part(amounts, lost) for since, tier, amounts in variants if since <= day}
        period = _part(base[-1] if base else prices[0][1], lost)
        period |= {"tiers": tiers} if tiers else {}
        period |= _besides(base[-1] if base else prices[0][1])
        if not periods or {**periods[-1], "from": None} != {**period, "from": None}:
            periods.append({**({"from": day} if day else {}), **period})
    if not any("prompt" in one or "answer" in one for one in periods):
        return PriceRow(name, {}, tuple(sorted(lost)))
    price = periods[0] if len(periods) == 1 else {"periods": periods}
    return PriceRow(name, price, tuple(sorted(lost)))


def _dated(said: object, lost: set[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield prices and the day from which they count, "" for always; those of some hours are left out."""
    if isinstance(said, dict):
        yield "", said
        return
    for one in said if isinstance(said, list) else ():
        amounts = one.get("prices") if isinstance(one, dict) else None
        if not isinstance(amounts, dict):
            continue
        constraint = one.get("constraint") or {}
        if set(constraint) - {"start_date", "type"}:
            lost.add("prices of some hours")
        elif amounts:
            yield str(constraint.get("start_date") or ""), amounts


def _tier_of(when: object, lost: set[str]) -> str:
    if not isinstance(when, dict) or len(when) != 1:
        lost.add("price_variants of several conditions")
        return ""
    ((what, value),) = when.items()
    if what not in ("service_tier", "processing") or not isinstance(value, str):
        lost.add(f"price_variants by {what}")
        return ""
    return tier_name(value)


def _part(amounts: Mapping[str, Any], lost: set[str]) -> dict[str, Any]:
    """Return the rates and their steps."""
    rates: dict[str, Any] = {}
    steps: dict[int, dict[str, Any]] = {}
    for field, value in amounts.items():
        what = _RATES.get(field)
        if what is None:
            if field not in _TOOLS and field != _CALLS:
                lost.add(field)
            continue
        base = number_of(value.get("base") if isinstance(value, dict) else value)
        if base is not None:
            rates[what] = plain_number(base)
        for tier in value.get("tiers") or () if isinstance(value, dict) else ():
            start, price = tier.get("start"), number_of(tier.get("price"))
            if isinstance(start, int) and price is not None:
                steps.setdefault(start, {"above": start})[what] = plain_number(price)
    return {**rates, "steps": [steps[at] for at in sorted(steps)]} if steps else rates


def _besides(amounts: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    calls = number_of(amounts.get(_CALLS))
    if calls:
        told["per_call"] = _each(calls)
    tools = {
        tool: _each(amount)
        for field, tool in _TOOLS.items()
        if (amount := number_of(amounts.get(field)))
    }
    return {**told, "server_tools": tools} if tools else told


def _each(thousand: Decimal) -> float | int:
    return plain_number(thousand / _THOUSAND)
