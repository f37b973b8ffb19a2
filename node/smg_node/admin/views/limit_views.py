"""Limit views: limits as they are typed by operators, and as rows and facts."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from smg_node.admin.views.output import draw_facts, draw_table, tell
from smg_node.admin.views.value_text import format_time

COST: Final = "cost"
_MILLION: Final = 1_000_000
_DIGITS_MAX: Final = 20
_USE: Final = (
    "LIMIT",
    "OF",
    "SPENT",
    "LEFT",
    "POOL",
    "STANDING",
    "DEBT",
    "OWNER",
    "STATE",
    "WINDOW ENDS",
)
_NODES: Final = (
    "LIMIT",
    "NODE",
    "SPENT",
    "LEFT",
    "GIVEN",
    "STANDING",
    "BORROWED",
    "DEBT",
    "STATE",
    "NOTE",
)


def read_amount(unit: str, text: str) -> Mapping[str, Any]:
    """Return the amount in `60/minute`; cost is in the currency and may have a fraction.
    ValueError.
    """
    said, slash, window = text.partition("/")
    if not slash or not window:
        raise ValueError(f"{text[:64]!r} is not AMOUNT/WINDOW, such as 60/minute or 5/10s")
    return {"unit": unit, "amount": _amount(unit, said), "window": window.strip()}


def format_limits(view: Mapping[str, Any]) -> list[str]:
    """Return each amount of a rule, as it could be typed."""
    return [
        *(
            f"{_number(one['unit'], one['amount'])} {one['unit']}/{one['window']}"
            for one in view["amounts"]
        ),
        *([] if view["concurrency"] is None else [f"{view['concurrency']} at a time"]),
    ]


def list_row(view: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the row of a limit that is defined."""
    notes = [
        *(["in conflict"] if view["conflicts"] else []),
        *(["volatile"] if view["volatile"] else []),
        *([view["note"]] if view["note"] else []),
    ]
    return (
        view["scope"],
        format_limits(view),
        view["mode"],
        view["standing"],
        view["version"],
        view["owner"],
        format_time(view["time_ms"]),
        notes,
    )


def draw_limit(shown: Mapping[str, Any]) -> str:
    """Return one limit, what is spent of it, and by whom."""
    uses: Sequence[Mapping[str, Any]] = shown["uses"]
    exact = "everything is counted" if shown["exact"] else "NOT exact: see the notes"
    parts = [
        draw_facts(_facts(shown["limit"])),
        draw_table(_USE, map(_use_row, uses), empty="Nothing of it is in use."),
        draw_table(_NODES, (row for use in uses for row in _node_rows(use)), empty=""),
        f"{exact}." if uses else "",
        *_notes(shown),
    ]
    return "\n\n".join(part for part in parts if part)


def warn_of(view: Mapping[str, Any]) -> None:
    """Print warnings about a limit to stderr."""
    for rival in view["conflicts"]:
        limits = ", ".join(format_limits(rival)) or "a removal"
        tell(
            f"{view['scope']} has a conflict: {limits} was written on {rival['owner']} at"
            f" {format_time(rival['time_ms'])} without knowledge of this; setting it again settles it"
        )


def _facts(view: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield "scope", view["scope"]
    if view["rule"] != view["scope"]:
        yield "rule", view["rule"]
    yield "limits", format_limits(view)
    yield "mode", f"{view['mode']}, {view['standing']:g} of it stands with the nodes"
    yield "tokens", f"reserve {view['reserve']}, when used up {view['on_exhausted']}"
    if view["cached_weight"] != 1:
        yield "cached", f"a cached token of a prompt counts {view['cached_weight']:g}"
    yield "version", view["version"]
    yield "set", f"on {view['owner']} at {format_time(view['time_ms'])}"
    if view["note"]:
        yield "note", view["note"]


def _use_row(use: Mapping[str, Any]) -> tuple[object, ...]:
    unit = use["unit"]
    left = use["left"] + (use["pool"] or 0)
    return (
        use["key"],
        _number(unit, use["amount"]),
        _number(unit, use["spent"]),
        _number(unit, left),
        None if use["pool"] is None else _number(unit, use["pool"]),
        _number(unit, use["standing"]),
        _number(unit, use["debt"]),
        use["owner"],
        use["state"],
        format_time(use["ends_ms"]) if use["window_ms"] else None,
    )


def _node_rows(use: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    unit = use["unit"]
    for name, one in sorted(use["nodes"].items()):
        notes = [
            *([] if one["window"] == use["window"] else ["another window: not counted"]),
            *(["goes by an older version"] if name in use["not_adopted"] else []),
        ]
        yield (
            use["key"],
            name,
            _number(unit, one["spent"]),
            _number(unit, one["left"]),
            None if one["given"] is None else _number(unit, max(0, one["given"])),
            _number(unit, one["standing"]),
            _number(unit, one["borrowed"]),
            _number(unit, one["debt"]),
            one["state"],
            notes,
        )


def _notes(shown: Mapping[str, Any]) -> Iterator[str]:
    silent = [f"{name} did not answer: {why}" for name, why in sorted(shown["silent"].items())]
    late = sorted({name for use in shown["uses"] for name in use["not_adopted"]})
    cut = [f"{shown['cut']} more are in use and not shown"] if shown["cut"] else []
    old = [f"not known to go by this version: {', '.join(late)}"] if late else []
    orphans = [
        f"{use['key']} has no owner now: nobody wanted any lately, or no majority is in sight"
        for use in shown["uses"]
        if not use["term"]
    ]
    if notes := [*silent, *orphans, *old, *cut]:
        yield "\n".join(notes)


def _amount(unit: str, text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise ValueError(f"{text[:64]!r} is too large")
    try:
        number = Decimal(text) * (_MILLION if unit == COST else 1)
    except InvalidOperation:
        raise ValueError(f"{text[:64]!r} is no number") from None
    if not number.is_finite() or number < 0 or number != number.to_integral_value():
        least = "six digits behind the point" if unit == COST else "whole"
        raise ValueError(f"{text[:64]!r}: an amount is not negative, and {least}")
    return int(number)


def _number(unit: str, amount: int) -> int | str:
    """An amount as it is typed; cost in the currency."""
    return amount if unit != COST else f"{Decimal(amount) / _MILLION:f}"
