"""Bill of a vendor: tokens and money per key and model, in whole numbers so that sums are exact.

A model may cost something else in a service tier, and something else again, for all tokens, where a prompt has more than
so many of them: `MODEL@flex`, `MODEL>200000`, `MODEL@flex>200000`. The nearest that is said counts: tier before length.
"""

import re
from typing import Any, Final, NamedTuple

import msgspec

from smg_chaos.vendor.answers.answer import Cost

PER_TOKENS: Final = 1_000_000
"""Prices are micro-dollars for so many tokens."""
_KINDS: Final = ("prompt", "cached", "written", "written_long", "answer")


class Price(msgspec.Struct, frozen=True):
    """Micro-dollars per million tokens: new prompt, read and written cache, written for an hour, answer."""

    prompt: int = 3_000_000
    cached: int = 300_000
    written: int = 3_750_000
    written_long: int = 6_000_000
    answer: int = 15_000_000

    def of(self, cost: Cost) -> int:
        """Return a cost in pico-dollars: micro-dollars per million, times tokens."""
        return (
            cost.new * self.prompt
            + cost.cached * self.cached
            + (cost.written - cost.written_long) * self.written
            + cost.written_long * self.written_long
            + cost.answer * self.answer
        )


class Priced(NamedTuple):
    """What a price is for: a model, a tier or "", and prompts of more than so many tokens."""

    model: str
    tier: str = ""
    above: int = -1


_PRICED: Final = re.compile(r"([^@>=]+)(?:@([a-z]+))?(?:>(\d+))?", re.ASCII)


def parse_price(spec: str) -> tuple[Priced, Price]:
    """Return what a price is for, and the price, in micro-dollars per million:
    `MODEL[@TIER][>TOKENS]=PROMPT,CACHED,WRITTEN,WRITTEN_LONG,ANSWER`.

    ValueError says what is wrong.
    """
    named, _, rest = spec.partition("=")
    texts = rest.split(",")
    found = _PRICED.fullmatch(named)
    if found is None or len(texts) != len(_KINDS) or not all(text.isdecimal() for text in texts):
        raise ValueError(f"price {spec!r}: give MODEL={','.join(map(str.upper, _KINDS))}")
    priced = Priced(found[1], found[2] or "", -1 if found[3] is None else int(found[3]))
    return priced, Price(*map(int, texts))


class _Row(msgspec.Struct):
    requests: int = 0
    cut: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    written_long_tokens: int = 0
    answer_tokens: int = 0
    pico_dollars: int = 0


class Bill:
    """What every key owes, by model."""

    def __init__(self, prices: dict[Priced, Price]) -> None:
        self._prices = prices
        self._rows: dict[tuple[str, str], _Row] = {}

    def clear(self) -> None:
        """Begin anew."""
        self._rows.clear()

    def price(self, model: str, tier: str, prompt: int) -> Price:
        """Return what a request of that tier costs whose prompt has so many tokens."""
        said = [
            (bool(one.tier), one.above, price)
            for one, price in self._prices.items()
            if one.model == model and one.tier in ("", tier) and prompt > one.above
        ]
        return max(said, key=lambda one: one[:2])[2] if said else _PRICE

    def book(self, key: str, model: str, cost: Cost, *, whole: bool = True, tier: str = "") -> None:
        """Add one request; not `whole` if its answer did not reach its end."""
        row = self._rows.setdefault((key, model), _Row())
        row.requests += 1
        row.cut += not whole
        row.prompt_tokens += cost.prompt
        row.cached_tokens += cost.cached
        row.written_tokens += cost.written
        row.written_long_tokens += cost.written_long
        row.answer_tokens += cost.answer
        row.pico_dollars += self.price(model, tier, cost.prompt).of(cost)

    def told(self) -> dict[str, Any]:
        """Return the rows and their sum; `micro_dollars` is rounded down, `pico_dollars` exact."""
        rows = [
            {
                "key": key,
                "model": model,
                **msgspec.to_builtins(row),
                "micro_dollars": row.pico_dollars // PER_TOKENS,
            }
            for (key, model), row in sorted(self._rows.items())
        ]
        total = sum(row.pico_dollars for row in self._rows.values())
        return {"rows": rows, "pico_dollars": total, "micro_dollars": total // PER_TOKENS}


_PRICE: Final = Price()
