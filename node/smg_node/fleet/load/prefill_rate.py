"""Prefill rate: measured prompt tokens a second of each worker, smoothed by the usual rate of its
group. Pure.

    rate = (usual rate x 1 s + measured tokens) / (1 s + measured seconds)

What was measured 60 s ago counts half, whether anything was measured since or not: a worker that
was slow once, or that was not measured yet, soon gets the rate of its group, and so requests that
show its own. Without that, two workers that are the same would differ for ever, and the first one
measured would get everything.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final

HALF_LIFE_S: Final = 60.0
USUAL_S: Final = 1.0
"""What is usual weighs as much as so many seconds of measured work: a few prompts."""
_OUTLIER: Final = 4.0
"""One measurement counts as this many times faster or slower than what was known before it at most."""


@dataclass(slots=True)
class Measured:
    """Work that was measured at one worker, as it counts at `at_s`."""

    tokens: float = 0.0
    seconds: float = 0.0
    at_s: float = 0.0

    def age(self, now_s: float) -> None:
        """Let time pass: what was measured counts for less."""
        kept = 0.5 ** (max(0.0, now_s - self.at_s) / HALF_LIFE_S)
        self.tokens *= kept
        self.seconds *= kept
        self.at_s = now_s

    def add(self, tokens: int, seconds: float, *, known: float, now_s: float) -> None:
        """Count in that so many tokens took so long, where the rate was `known` to be about that."""
        self.age(now_s)
        expected_s = tokens / known
        self.tokens += tokens
        self.seconds += min(max(seconds, expected_s / _OUTLIER), expected_s * _OUTLIER)

    def rate(self, usual: float) -> float:
        """Return the tokens a second that follow."""
        return (usual * USUAL_S + self.tokens) / (USUAL_S + self.seconds)


class UsualRates:
    """The usual rate of each group of workers that are alike. It stays as it was while nothing is
    measured.
    """

    def __init__(self) -> None:
        self._rates: dict[Hashable, float] = {}

    def take(self, measured: Iterable[tuple[Hashable, Measured]], *, first: float) -> None:
        """Take what was measured at all workers, each with its group; `first` is usual where nothing ever was."""
        sums: dict[Hashable, Measured] = {}
        for group, one in measured:
            total = sums.setdefault(group, Measured())
            total.tokens += one.tokens
            total.seconds += one.seconds
        before = self._rates
        self._rates = {
            group: total.rate(before.get(group, first))
            for group, total in sums.items()
            if total.seconds or group in before
        }

    def of(self, group: Hashable, *, first: float) -> float:
        """Return the usual rate of a group."""
        return self._rates.get(group, first)
