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
    def share(self) -> Share:
        """What this node may spend of it."""
        ...

    def remains(self) -> int:
        """Return what a client is told to remain now."""
        ...


class LimitHeaders:
    """Those of one family, for the limits that requests of one kind meet."""

    __slots__ = ("_groups", "_is_openai", "_measures", "_moment", "_spelled")

    def __init__(self, measures: Sequence[Shown], family: Family) -> None:
        self._measures = measures
        self._is_openai = family == "openai"
        # The three names of each group, and the places of its limits: the only one, or all of several.
        self._groups = [
            (*group_names(group, family), places[0], places if len(places) > 1 else ())
            for group, units in GROUPS[family].items()
            if (places := tuple(at for at, one in enumerate(measures) if one.unit in units))
        ]
        # Windows of one length end together, and so do those of all replies of a millisecond.
        self._moment = -1
        self._spelled = ""

    def as_of(self, now_ms: int) -> dict[str, str] | None:
        """Return them as of now; None where a share sleeps, and nobody knows what it has."""
        measures = self._measures
        if not measures:
            return {}
        named, least = measures[0], math.inf
        remaining: list[int] = []
        for measure in measures:
            share = measure.share
            if share.window < 0:
                return None
            left, amount = measure.remains(), share.amount
            remaining.append(left)
            fraction = left / amount if amount else 0.0
            if fraction < least:
                named, least = measure, fraction
        headers: dict[str, str] = {}
        for limit, remains, reset, at, places in self._groups:
            if places:
                at = self._tightest(places, remaining)
            share = measures[at].share
            headers[limit] = str(share.amount)
            headers[remains] = str(remaining[at])
            until_ms = share.ends_ms
            if until_ms < now_ms or not share.window_ms:
                until_ms = now_ms
            moment_ms = until_ms - now_ms if self._is_openai else until_ms
            if moment_ms != self._moment:
                self._moment = moment_ms
                self._spelled = duration(moment_ms) if self._is_openai else moment(moment_ms)
            headers[reset] = self._spelled
        headers["x-smg-limit"] = named.name
        headers["x-smg-limit-state"] = named.share.state
        return headers

    def _tightest(self, places: Sequence[int], remaining: Sequence[int]) -> int:
        """Return which limit of a group has least of what it allows; of equals the first."""
        amounts = [self._measures[at].share.amount for at in places]
        fractions = [
            remaining[at] / amount if amount else 0.0
            for at, amount in zip(places, amounts, strict=True)
        ]
        return places[fractions.index(min(fractions))]
