"""Versions of one limit, each written after the one before, as records of rules keep what was before."""

from typing import Final

from smg_mesh.escrow.limit_model import Limit
from smg_mesh.state.limits.limit_rule import Amount, LimitRule, Older
from smg_mesh.state.limits.older_amounts import fewer, limit_of

KEEP_MS: Final = 7 * 86_400_000
"""As long as a real cluster remembers what was taken away."""


class Versions:
    """Versions of one limit; `keep_ms`: how long a node may be away and come back with what it knew."""

    def __init__(self, first: Limit, *, keep_ms: int = KEEP_MS) -> None:
        self.newest = first
        self._keep_ms: Final = keep_ms
        self._older: tuple[Older, ...] = ()

    def write(self, amount: int, standing: float | None, *, wall_ms: int) -> Limit:
        """Return the next version, written at that time; None: the part that stands stays."""
        last = self.newest
        told = Amount(last.unit, amount, last.window_ms)
        rule = LimitRule(
            amounts=(told,),
            mode=last.mode,
            standing=last.standing if standing is None else standing,
            volatile=last.volatile,
        )
        before = Older(last.unit, last.window_ms, last.amount, last.standing, wall_ms)
        since_ms = wall_ms - self._keep_ms
        self._older = fewer((*self._older, before), since_ms=since_ms, rule=rule)
        self.newest = limit_of(
            last.key,
            rule,
            told,
            self._older,
            version=last.version + 1,
            now_ms=wall_ms,
            keep_ms=self._keep_ms,
        )
        return self.newest
