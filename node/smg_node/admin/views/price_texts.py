"""Price texts: prices as rows of a table, and one as a few lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

PRICE_COLUMNS: Final = ("NAME", "FROM", "PROMPT", "CACHED", "WRITTEN", "LONG", "ANSWER", "CALL", "ALSO", "SOURCE")  # fmt: skip
_RATES: Final = ("prompt", "cached", "written", "written_long", "answer", "per_call")


def price_row(view: Mapping[str, Any]) -> Sequence[object]:
    """Return the row of a price: that of its last period."""
    periods = periods_of(view["price"])
    last = periods[-1]
    also = [
        *([f"{len(periods)} periods"] if len(periods) > 1 else []),
        *(f"above {step['above']:,}" for step in last.get("steps", ())),
        *last.get("tiers", ()),
        *last.get("server_tools", ()),
    ]
    rates = (last.get(name, "") for name in _RATES)
    return (view["name"], last.get("from", ""), *rates, ", ".join(also), view["source"])


def short_price(price: Mapping[str, Any]) -> str:
    """Return a price in a few words: prompt, cached, written, answer of its last period, and what else there is."""
    periods = periods_of(price)
    last = periods[-1]
    rates = " ".join(f"{last.get(name, '-')}" for name in ("prompt", "cached", "written", "answer"))
    more = [
        *([f"{len(periods)} periods"] if len(periods) > 1 else []),
        *([f"{len(last['steps'])} steps"] if last.get("steps") else []),
        *([f"{len(last['tiers'])} tiers"] if last.get("tiers") else []),
    ]
    return f"{rates} ({', '.join(more)})" if more else rates


def draw_price(view: Mapping[str, Any]) -> str:
    """Return one price as lines."""
    lines = [f"{view['name']}  {view['source']}, version {view['version']}"]
    for period in periods_of(view["price"]):
        lines.append(f"from {period.get('from', 'the beginning')}")
        lines += _lines(period, "  ")
        for tier, said in period.get("tiers", {}).items():
            lines.append(f"  tier {tier}")
            lines += _lines(said, "    ")
    return "\n".join(lines)


def periods_of(price: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the periods of a price as it was said: one, or several."""
    periods: Sequence[Mapping[str, Any]] = price.get("periods") or [price]
    return periods


def _lines(said: Mapping[str, Any], indent: str) -> Iterator[str]:
    yield indent + _rates(said)
    for step in said.get("steps", ()):
        yield f"{indent}above {step['above']:,} tokens of prompt: {_rates(step)}"
    for tool, amount in said.get("server_tools", {}).items():
        yield f"{indent}{tool} {amount} each time"


def _rates(said: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {said[name]}" for name in _RATES if name in said) or "nothing said"
