"""Table of litellm, `model_prices_and_context_window.json`: dollars a token, in names with their conditions. Pure.

    input_cost_per_token                            also output_, cache_read_input_token_cost, cache_creation_…
    …_above_1hr, …_above_12hr                       tokens written for long
    …_above_272k_tokens                             a step; tiered_pricing has steps as a list
    …_flex, …_priority, …_batches                   a tier
    search_context_cost_per_query                   of three sizes: the middle one
    input_cost_per_request                          a call

A cache write at 0 beside a prompt that is not free is one that nobody looked up, so it is left out.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from smg_node.admin.price_tables.price_row import (
    NamedModel,
    PriceRow,
    number_of,
    plain_number,
)
from smg_node.core.prices.price import tier_name

_MILLION: Final = 1_000_000
_THOUSAND: Final = 1_000
_BASES: Final[tuple[tuple[str, str], ...]] = (
    ("cache_creation_input_token_cost_above_1hr", "written_long"),
    ("cache_creation_input_token_cost_above_12hr", "written_long"),
    ("cache_creation_input_token_cost", "written"),
    ("cache_read_input_token_cost", "cached"),
    ("input_cost_per_token", "prompt"),
    ("output_cost_per_token", "answer"),
)
"""Longest names first."""
_STEP: Final = re.compile(r"_above_(\d{1,9})(k?)_tokens", re.ASCII)
_TIER: Final = re.compile(r"_([a-z]{1,32})", re.ASCII)
_SEARCH: Final = "search_context_cost_per_query"
_SIZE: Final = "search_context_size_medium"
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("{model}",),
    "anthropic": ("{model}",),
    "gemini": ("gemini/{model}",),
    "vertex": ("vertex_ai/{model}", "gemini/{model}"),
    "vertex_anthropic": ("vertex_ai/{model}",),
    "claude_gcp": ("vertex_ai/{model}",),
    "bedrock": ("bedrock/{region}/{model}", "{model}", "bedrock/{model}"),
    "bedrock_invoke": ("bedrock/{region}/{model}", "{model}", "bedrock/{model}"),
    "mantle": ("bedrock_mantle/{region}/{model}", "bedrock_mantle/{model}"),
    "claude_aws": ("bedrock/claude_platform/{model}",),
    "azure": ("azure/{model}",),
    "azure_dated": ("azure/{model}",),
    "foundry": ("azure_ai/{model}",),
    "xai": ("xai/{model}",),
}
"""How the table names the models of a kind of provider, the likeliest first."""


class LitellmTable:
    """The table; ValueError for what is none."""

    def __init__(self, said: object) -> None:
        if not isinstance(said, dict) or not any(_has_price(one) for one in said.values()):
            raise ValueError(
                "it is no table of litellm: an object of models with input_cost_per_token"
            )
        self._models: Mapping[str, Any] = said

    def rows(self) -> Iterator[PriceRow]:
        """See `PriceTable`."""
        for name, one in self._models.items():
            if name != "sample_spec" and _has_price(one):
                yield _row(name, one)

    def find(self, model: NamedModel) -> PriceRow | None:
        """See `PriceTable`."""
        for name in _names(model):
            one = self._models.get(name)
            if isinstance(one, dict) and _has_price(one):
                return _row(name, one)
        return None


def _names(model: NamedModel) -> Iterator[str]:
    if model.kind == "openai_like":
        host = urlsplit(model.base).hostname or ""
        yield from (f"{word}/{model.model}" for word in host.split("."))
        return
    for form in _NAMES.get(model.kind, ()):
        if model.region or "{region}" not in form:
            yield form.format(model=model.model, region=model.region)


def _has_price(one: object) -> bool:
    if not isinstance(one, dict):
        return False
    costs = (one.get("input_cost_per_token"), one.get("output_cost_per_token"))
    return any(number_of(cost) is not None for cost in costs) or bool(one.get("tiered_pricing"))


def _row(name: str, one: Mapping[str, Any]) -> PriceRow:
    found: dict[tuple[str, int], dict[str, Decimal]] = {}
    lost: list[str] = []
    for field, value in one.items():
        place = _place(field)
        amount = number_of(value)
        if place is not None and amount is not None:
            tier, above, what = place
            # The shorter of two long times stands first in the list of names, and is the commoner.
            found.setdefault((tier, above), {}).setdefault(what, amount * _MILLION)
        elif _is_cost(field) and value and field not in _SAID_APART:
            lost.append(field)
    for row in one.get("tiered_pricing") or ():
        _step_of(row, found)
    return PriceRow(name, {**_joined(found), **_besides(one)}, tuple(sorted(lost)))


_SAID_APART: Final = frozenset(
    (_SEARCH, "tiered_pricing", "input_cost_per_request", "file_search_cost_per_1k_calls")
)


def _is_cost(field: str) -> bool:
    return "cost" in field or "pricing" in field


def _place(field: str) -> tuple[str, int, str] | None:
    """Return tier, step and rate of a field; None for one that no price here has."""
    for base, what in _BASES:
        if not field.startswith(base):
            continue
        rest = field[len(base) :]
        step = _STEP.search(rest)
        above = -1
        if step is not None:
            above = int(step[1]) * (_THOUSAND if step[2] else 1)
            rest = rest[: step.start()] + rest[step.end() :]
        tier = _TIER.fullmatch(rest)
        if rest and (tier is None or "token" in rest):
            return None
        return tier_name(tier[1]) if tier is not None else "", above, what
    return None


def _step_of(row: object, found: dict[tuple[str, int], dict[str, Decimal]]) -> None:
    """Take a row of a list of steps: `range` is the first and the last token of a prompt."""
    span = row.get("range") if isinstance(row, dict) else None
    first = number_of(span[0]) if isinstance(span, list) and span else None
    if not isinstance(row, dict) or first is None:
        return
    above = int(first) if first else -1
    for field, value in row.items():
        place, amount = _place(field), number_of(value)
        if place is not None and amount is not None and place[1] == -1:
            found.setdefault((place[0], above), {})[place[2]] = amount * _MILLION


def _joined(found: Mapping[tuple[str, int], Mapping[str, Decimal]]) -> dict[str, Any]:
    price: dict[str, Any] = {}
    tiers: dict[str, dict[str, Any]] = {}
    for (tier, above), amounts in sorted(found.items()):
        part = price if not tier else tiers.setdefault(tier, {})
        free = found.get((tier, above), {}).get("prompt", Decimal(0)) == 0
        told = {
            what: plain_number(amount)
            for what, amount in sorted(amounts.items())
            if amount or free or what not in ("written", "written_long")
        }
        if above < 0:
            part.update(told)
        elif told:
            part.setdefault("steps", []).append({"above": above, **told})
    return {**price, "tiers": tiers} if tiers else price


def _besides(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of calls and of the vendor's own tools."""
    told: dict[str, Any] = {}
    per_call = number_of(one.get("input_cost_per_request"))
    if per_call:
        told["per_call"] = plain_number(per_call)
    tools: dict[str, float | int] = {}
    sizes = one.get(_SEARCH)
    search = number_of(sizes.get(_SIZE)) if isinstance(sizes, dict) else None
    if search:
        tools["web_search"] = plain_number(search)
    files = number_of(one.get("file_search_cost_per_1k_calls"))
    if files:
        tools["file_search"] = plain_number(files / _THOUSAND)
    return {**told, "server_tools": tools} if tools else told
