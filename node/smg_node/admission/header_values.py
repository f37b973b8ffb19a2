"""Header values of limits: name, what remains, time until more; and their headers. Pure."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from smg_node.admission.ports import State, Unit

Family: TypeAlias = Literal["openai", "anthropic"]
"""Whose names the headers have."""

_WINDOWS: Final[Mapping[int, str]] = {
    1_000: "second",
    60_000: "minute",
    3_600_000: "hour",
    86_400_000: "day",
}
_NAME_CHARACTERS_MAX: Final = 200
_TOKENS: Final[tuple[Unit, ...]] = ("tokens", "input_tokens", "output_tokens")
GROUPS: Final[Mapping[Family, Mapping[str, tuple[Unit, ...]]]] = {
    "openai": {"requests": ("requests",), "tokens": _TOKENS},
    "anthropic": {
        "requests": ("requests",),
        "tokens": _TOKENS,
        "input-tokens": ("input_tokens",),
        "output-tokens": ("output_tokens",),
    },
}
_GROUPS_OF: Final[Mapping[Family, Mapping[Unit, tuple[str, ...]]]] = {
    family: {
        unit: tuple(group for group, units in groups.items() if unit in units)
        for unit in ("requests", *_TOKENS)
    }
    for family, groups in GROUPS.items()
}
_DURATIONS_KEPT: Final = 4096
"""Nodes tell of windows of some minutes again and again; of longer ones the last is told, for a second."""


class HeaderValues(msgspec.Struct, frozen=True):
    """One limit as of now. `reset_ms` is how long its window still lasts, `resets_ms` when it ends
    by the wall clock.
    """

    name: str
    unit: Unit
    state: State
    limit: int
    remaining: int
    reset_ms: int
    resets_ms: int


def limit_headers(
    limits: Sequence[HeaderValues], family: Family, *, refused: HeaderValues | None = None
) -> dict[str, str]:
    """Return the headers of these limits: the tightest of each kind, and the tightest of all.

    One that `refused` is named in any case.
    """
    if not limits:
        return {}
    # One look at each: every reply to a limited client has these headers.
    groups_of = _GROUPS_OF[family]
    tightest: dict[str, HeaderValues] = {}
    least: dict[str, float] = {}
    named, named_least = limits[0], math.inf
    for limit in limits:
        fraction = limit.remaining / limit.limit if limit.limit else 0.0
        if fraction < named_least:
            named, named_least = limit, fraction
        for group in groups_of.get(limit.unit, ()):
            if fraction < least.get(group, math.inf):
                tightest[group], least[group] = limit, fraction
    if refused is not None:
        named = refused
        for group in groups_of.get(refused.unit, ()):
            tightest[group] = refused
    headers: dict[str, str] = {}
    for group in GROUPS[family]:
        if group in tightest:
            headers.update(_group(group, tightest[group], family))
    headers["x-smg-limit"] = named.name
    headers["x-smg-limit-state"] = named.state
    return headers


def limit_name(scope: str, unit: Unit, window_ms: int) -> str:
    """Return what a limit is called, in characters that a header may hold."""
    window = f"/{window_name(window_ms)}" if window_ms else ""
    name = f"{scope or 'global'}#{unit}{window}"
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in name)[
        :_NAME_CHARACTERS_MAX
    ]


def window_name(window_ms: int) -> str:
    """Return a length of a window in words: `minute`, `10s`, `5m`, `250ms`."""
    return _WINDOWS.get(window_ms) or duration(window_ms, brief=True)


def duration(length_ms: int, *, brief: bool = False) -> str:
    """Return a length of time as `120ms`, `1s`, `6m0s`, `1h0m0s`; `brief` leaves zeros out."""
    if length_ms < 1_000:
        return f"{length_ms}ms"
    return _whole(math.ceil(length_ms / 1_000), brief)


@lru_cache(_DURATIONS_KEPT)
def _whole(seconds: int, brief: bool) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "m"), (seconds, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return "".join(f"{count}{unit}" for count, unit in parts if count or not brief)


def _group(group: str, told: HeaderValues, family: Family) -> dict[str, str]:
    limit, remaining, reset = group_names(group, family)
    return {
        limit: str(told.limit),
        remaining: str(told.remaining),
        reset: duration(told.reset_ms) if family == "openai" else moment(told.resets_ms),
    }


def group_names(group: str, family: Family) -> tuple[str, str, str]:
    """Return the headers of a group: what is allowed, what remains, and when or in how long there is more."""
    if family == "openai":
        return (
            f"x-ratelimit-limit-{group}",
            f"x-ratelimit-remaining-{group}",
            f"x-ratelimit-reset-{group}",
        )
    start = f"anthropic-ratelimit-{group}"
    return f"{start}-limit", f"{start}-remaining", f"{start}-reset"


def moment(at_ms: int) -> str:
    """Return a time of the wall clock by RFC 3339, whole seconds, not before it."""
    at = datetime.fromtimestamp(math.ceil(at_ms / 1000), UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
