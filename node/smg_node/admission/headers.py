"""The headers that tell a client of its limits, for the same limits again and again: what does not change is made once. Pure.

Every reply to whoever has a limit has them. They say what `told.limit_headers` says of the same limits, at a third of its price.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from smg_node.admission.ports import Share, Unit
from smg_node.admission.told import GROUPS, Family, duration, group_names, moment


class Shown(Protocol):
    """A limit, as far as its headers need it; see `matching.Measure`."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def unit(self) -> Unit:
        """What it counts."""
        ...

    @property
    def window_ms(self) -> int:
        """How long a window is; 0 for what is open at a time."""
        ...

    @property
    def share(self) -> Share:
        """What this node may spend of it."""
        ...

    def remains(self) -> int:
        """Return what a client is told to remain now."""
        ...


class LimitHeaders:
    """Those of one family, for the limits that requests of one kind meet."""

    __slots__ = ("_groups", "_is_openai", "_measures")

    def __init__(self, measures: Sequence[Shown], family: Family) -> None:
        self._measures = measures
        self._is_openai = family == "openai"
        groups = []
        for group, units in GROUPS[family].items():
            places = tuple(at for at, one in enumerate(measures) if one.unit in units)
            if places:
                groups.append((group_names(group, family), places))
        self._groups = groups

    def as_of(self, now_ms: int) -> dict[str, str] | None:
        """Return them as of now; None where a share sleeps, and nobody knows what it has."""
        measures = self._measures
        if not measures:
            return {}
        named, least = measures[0], math.inf
        remaining: list[int] = []
        fractions: list[float] = []
        for measure in measures:
            share = measure.share
            if share.window < 0:
                return None
            left, amount = measure.remains(), share.amount
            fraction = left / amount if amount else 0.0
            if fraction < least:
                named, least = measure, fraction
            remaining.append(left)
            fractions.append(fraction)
        headers: dict[str, str] = {}
        for (limit, remains, reset), places in self._groups:
            at = places[0]
            if len(places) > 1:
                at = min(places, key=fractions.__getitem__)
            measure = measures[at]
            share = measure.share
            reset_ms = max(0, share.ends_ms - now_ms) if measure.window_ms else 0
            headers[limit] = str(share.amount)
            headers[remains] = str(remaining[at])
            headers[reset] = duration(reset_ms) if self._is_openai else moment(now_ms + reset_ms)
        headers["x-smg-limit"] = named.name
        headers["x-smg-limit-state"] = named.share.state
        return headers
