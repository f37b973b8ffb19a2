"""Limit parser: reads limits as people write them, and tells each mistake with the field it is in.

    {"amounts": [{"unit": "requests", "amount": 60, "window": "minute"}], "concurrency": 8, "mode": "strict"}

A window is second, minute, hour, day, or a number of s, m, h or d: `10s`. Days are those of UTC.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, get_args

from smg_mesh.escrow.limit_model import AMOUNT_MAX, Mode, Unit
from smg_mesh.state.limits.limit_rule import (
    AMOUNTS_MAX,
    CONCURRENCY_MAX,
    CONCURRENT,
    LASTING_MS,
    NOTE_CHARS_MAX,
    Amount,
    LimitRule,
    OnExhausted,
    Reserve,
)
from smg_mesh.state.limits.limit_scope import Scope
from smg_mesh.state.limits.limit_window import read_window

UNITS: Final[tuple[Unit, ...]] = tuple(unit for unit in get_args(Unit) if unit != CONCURRENT)
FIELDS: Final = (
    "amounts",
    "concurrency",
    "mode",
    "standing",
    "reserve",
    "on_exhausted",
    "cached_weight",
    "volatile",
    "note",
)
AMOUNT_FIELDS: Final = ("unit", "amount", "window")
TOOL_UNITS: Final = ("requests", "cost")
"""A run of a tool has no tokens."""


class LimitError(ValueError):
    """Input that is no limit. `field` is the place of what is wrong with it, as a JSON path."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field: Final = field
        self.message: Final = message


def read_rule(scope: Scope, body: Mapping[str, Any], *, durable: bool) -> LimitRule:
    """Return the rule that this says for that scope; LimitError names the first field that is wrong.

    `durable`: what is minted can be written down here, so that windows of an hour and more survive a restart.
    """
    for name in body:
        if name not in FIELDS:
            raise LimitError(str(name)[:64], f"is nothing that a limit has: {', '.join(FIELDS)}")
    rule = LimitRule(
        tenant=scope.tenant,
        key=scope.key,
        model=scope.model,
        amounts=_amounts(body.get("amounts")),
        concurrency=_whole(body, "concurrency", CONCURRENCY_MAX),
        mode=_word(body, "mode", get_args(Mode), "balanced"),
        standing=_part(body, "standing", 0.5),
        reserve=_word(body, "reserve", get_args(Reserve), "estimate"),
        on_exhausted=_word(body, "on_exhausted", get_args(OnExhausted), "debt"),
        cached_weight=_part(body, "cached_weight", 1.0),
        volatile=_switch(body, "volatile"),
        note=_note(body),
        provider=scope.provider,
        tool=scope.tool,
    )
    if scope.provider and rule.on_exhausted == "finish":
        raise LimitError("on_exhausted", "of a provider is debt: answers that began are not ended")
    if scope.tool:
        _check_of_tool(rule)
    if not rule.limits:
        raise LimitError("amounts", "says nothing: give amounts, concurrency or both")
    lasting = [at for at, one in enumerate(rule.amounts) if one.window_ms >= LASTING_MS]
    if lasting and not (durable or rule.volatile):
        raise LimitError(
            f"amounts[{lasting[0]}].window",
            "of an hour or more would begin anew with a restart of the cluster: nodes need a data"
            " directory for it, or say volatile",
        )
    return rule


def _check_of_tool(rule: LimitRule) -> None:
    """LimitError for what has no meaning where runs of tools are limited."""
    for at, one in enumerate(rule.amounts):
        if one.unit not in TOOL_UNITS:
            of_runs = " or ".join(TOOL_UNITS)
            raise LimitError(f"amounts[{at}].unit", f"of a tool is {of_runs}: runs have no tokens")
    if rule.on_exhausted == "finish":
        raise LimitError("on_exhausted", "of a tool is debt: a run that began is not ended")
    if rule.cached_weight != 1.0:
        raise LimitError("cached_weight", "of a tool is nothing: runs have no tokens")


def _amounts(said: Any) -> tuple[Amount, ...]:
    if said is None:
        return ()
    if not isinstance(said, Sequence) or isinstance(said, str) or len(said) > AMOUNTS_MAX:
        raise LimitError("amounts", f"must be a list of at most {AMOUNTS_MAX}")
    found: dict[tuple[str, int], Amount] = {}
    for at, one in enumerate(said):
        amount = _amount(f"amounts[{at}]", one)
        if (amount.unit, amount.window_ms) in found:
            said_before = f"limits {amount.unit} of a {amount.window} a second time"
            raise LimitError(f"amounts[{at}]", said_before)
        found[amount.unit, amount.window_ms] = amount
    return tuple(found.values())


def _amount(where: str, said: Any) -> Amount:
    if not isinstance(said, Mapping):
        raise LimitError(where, "must be an object with unit, amount and window")
    for name in said:
        if name not in AMOUNT_FIELDS:
            raise LimitError(f"{where}.{str(name)[:64]}", "is not one of unit, amount, window")
    unit = said.get("unit")
    if unit not in UNITS:
        raise LimitError(f"{where}.unit", f"must be one of {', '.join(UNITS)}")
    amount = _integer(said.get("amount"))
    if amount is None or not 0 <= amount <= AMOUNT_MAX:
        raise LimitError(f"{where}.amount", f"must be a whole number from 0 to {AMOUNT_MAX}")
    window = said.get("window")
    if not isinstance(window, str):
        raise LimitError(f"{where}.window", "must be a text such as minute or 10s")
    try:
        return Amount(unit, amount, read_window(window))
    except ValueError as error:
        raise LimitError(f"{where}.window", str(error)) from error


def _whole(body: Mapping[str, Any], name: str, most: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    number = _integer(value)
    if number is None or not 0 <= number <= most:
        raise LimitError(name, f"must be a whole number from 0 to {most}")
    return number


def _integer(value: Any) -> int | None:
    """Return a whole number, `60.0` as well as 60; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _part(body: Mapping[str, Any], name: str, default: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise LimitError(name, "must be a number from 0 to 1")
    assert math.isfinite(value)
    return float(value)


def _word(body: Mapping[str, Any], name: str, words: Collection[str], default: str) -> Any:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str) or value not in words:
        raise LimitError(name, f"must be one of {', '.join(words)}")
    return value


def _switch(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise LimitError(name, "must be true or false")
    return bool(value)


def _note(body: Mapping[str, Any]) -> str:
    value = body.get("note")
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > NOTE_CHARS_MAX or not _printable(value):
        raise LimitError("note", f"must be at most {NOTE_CHARS_MAX} characters that can be shown")
    return value


def _printable(text: str) -> bool:
    return not text or text.isprintable()
