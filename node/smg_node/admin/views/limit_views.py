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
    "UNAVAILABLE",
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
_LEGEND: Final = (
    ("LEFT", "what can still be got in this window, at whichever node is asked (by node: in hand)"),
    ("UNAVAILABLE", "what nobody can get before the window ends; SPENT + LEFT + UNAVAILABLE = OF"),
    ("POOL", "of LEFT: what the owner has for any node that asks, or may still mint"),
    ("STANDING", "what was the nodes' own in this window so far, without an owner; spent or not"),
    ("GIVEN", "what the owner moved to this node"),
    ("BORROWED", "beyond the limit, by its mode, as this node is cut off"),
    ("DEBT", "used without a right by answers that became longer than reserved; later windows pay"),
)
_RARE: Final = ("DEBT", "BORROWED", "NOTE")
"""Columns that are shown only where there is something in them."""
_DAY_MS: Final = 86_400_000
_NO_REASONS: Final = "this node is of a version that does not say why"


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
    uses = [_filled(use) for use in shown["uses"]]
    whole, whole_rows = _shown(_USE, [_use_row(use) for use in uses])
    nodes, node_rows = _shown(_NODES, [row for use in uses for row in _node_rows(use)])
    legend = [(word, text) for word, text in _LEGEND if word in (*whole, *nodes)]
    parts = [
        draw_facts(_facts(shown["limit"])),
        draw_table(whole, whole_rows, empty="Nothing of it is in use."),
        draw_table(nodes, node_rows, empty=""),
        _counted(shown) if uses else "",
        "\n".join(note for use in uses for note in _use_notes(use)),
        draw_facts(legend) if uses else "",
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
    if from_ms := view.get("standing_from_ms", 0):
        tell(
            f"{view['scope']}: more is to stand with the nodes than before. In windows that begin before"
            f" {format_time(from_ms)} as much stands as before, and the owner gives out the rest: a node that was away"
            " may not have heard of the change"
        )


def _facts(view: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield "scope", view["scope"]
    if view["rule"] != view["scope"]:
        yield "rule", view["rule"]
    yield "limits", format_limits(view)
    yield "mode", f"{view['mode']}, {view['standing']:g} of it stands with the nodes{_from(view)}"
    yield "tokens", f"reserve {view['reserve']}, when used up {view['on_exhausted']}"
    if view["cached_weight"] != 1:
        yield "cached", f"a cached token of a prompt counts {view['cached_weight']:g}"
    yield "version", view["version"]
    yield "set", f"on {view['owner']} at {format_time(view['time_ms'])}"
    if view["note"]:
        yield "note", view["note"]


def _from(view: Mapping[str, Any]) -> str:
    """Say from when so much stands, where it is less yet."""
    from_ms = view.get("standing_from_ms", 0)
    return f", in windows from {format_time(from_ms)} on" if from_ms else ""


def _filled(use: Mapping[str, Any]) -> Mapping[str, Any]:
    """A use with all that is shown of it: a node of an older version says less."""
    left = use["left"] + (use["pool"] or 0)
    return {"name": use["key"], "remaining": left, "over": 0, "unavailable": (), **use}


def _shown(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """Leave out the columns that say nothing at all."""
    places = [
        place
        for place, column in enumerate(columns)
        if column not in _RARE or any(row[place] not in (0, "0", "") for row in rows)
    ]
    return [columns[at] for at in places], [[row[at] for at in places] for row in rows]


def _use_row(use: Mapping[str, Any]) -> tuple[object, ...]:
    unit = use["unit"]
    unavailable = sum(one["amount"] for one in use["unavailable"])
    return (
        use["name"],
        _number(unit, use["amount"]),
        _number(unit, use["spent"]),
        _number(unit, use["remaining"]),
        _number(unit, unavailable),
        None if use["pool"] is None else _number(unit, max(0, use["pool"])),
        _number(unit, use["standing"]),
        _number(unit, use["debt"]),
        use["owner"] if use["term"] else None,
        use["state"],
        _ends(use),
    )


def _ends(use: Mapping[str, Any]) -> str | None:
    """When its window ends: the time of the day, where that is enough."""
    if not use["window_ms"]:
        return None
    day, _, time = format_time(use["ends_ms"]).partition(" ")
    return time.replace("+00:00", "Z") if use["window_ms"] < _DAY_MS else f"{day} {time}"


def _node_rows(use: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    unit = use["unit"]
    for name, one in sorted(use["nodes"].items()):
        notes = [
            *([] if one["window"] == use["window"] else ["another window: not counted"]),
            *(["not known to go by this limit"] if name in use["not_adopted"] else []),
        ]
        yield (
            use["name"],
            name,
            _number(unit, one["spent"]),
            _number(unit, one["left"]),
            None if one["given"] is None else _number(unit, max(0, one["given"])),
            _number(unit, one["standing"]),
            _number(unit, one["borrowed"]),
            _number(unit, one["debt"]),
            one["state"],
            ", ".join(notes),
        )


def _counted(shown: Mapping[str, Any]) -> str:
    """Say that everything is counted, or what may not be."""
    if shown["exact"]:
        return "Everything is counted."
    reasons = shown.get("inexact_reasons", [_NO_REASONS])
    return "\n".join(f"NOT exact: {reason}." for reason in reasons)


def _use_notes(use: Mapping[str, Any]) -> Iterator[str]:
    """Yield where what is not to be had is, and what else is puzzling in its row."""
    unit, name = use["unit"], use["name"]
    for one in use["unavailable"]:
        yield f"{name}: {_number(unit, one['amount'])} {one['text']}."
    if use["over"]:
        over = _number(unit, use["over"])
        yield f"{name}: {over} more than the limit, borrowed by nodes that were cut off or owed by long answers."
    if use["window_ms"] and not use["term"] and not use["unavailable"]:
        yield f"{name}: nobody owns it at the moment; an owner is elected when a request wants more."


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
