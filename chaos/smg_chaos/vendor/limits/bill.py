"""Bill of a vendor: tokens and money per key and model, in whole numbers so that sums are exact."""

from typing import Any, Final

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


def parse_price(spec: str) -> tuple[str, Price]:
    """Return a model and its price: `MODEL=PROMPT,CACHED,WRITTEN,WRITTEN_LONG,ANSWER`, in micro-dollars per million.

    ValueError says what is wrong.
    """
    model, _, rest = spec.partition("=")
    texts = rest.split(",")
    if not model or len(texts) != len(_KINDS) or not all(text.isdecimal() for text in texts):
        raise ValueError(f"price {spec!r}: give MODEL={','.join(map(str.upper, _KINDS))}")
    return model, Price(*map(int, texts))


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

    def __init__(self, prices: dict[str, Price]) -> None:
        self._prices = prices
        self._rows: dict[tuple[str, str], _Row] = {}

    def clear(self) -> None:
        """Begin anew."""
        self._rows.clear()

    def book(self, key: str, model: str, cost: Cost, *, whole: bool = True) -> None:
        """Add one request; not `whole` if its answer did not reach its end."""
        row = self._rows.setdefault((key, model), _Row())
        row.requests += 1
        row.cut += not whole
        row.prompt_tokens += cost.prompt
        row.cached_tokens += cost.cached
        row.written_tokens += cost.written
        row.written_long_tokens += cost.written_long
        row.answer_tokens += cost.answer
        row.pico_dollars += self._prices.get(model, _PRICE).of(cost)

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
