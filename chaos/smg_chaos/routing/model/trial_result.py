"""Trial result: cache hits, times to the first token, and how evenly engines were loaded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from smg_chaos.routing.model.workload import Turn
from smg_chaos.statistics import percentile

_LOOKS_A_WINDOW: Final = 20


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one trial; shares are 0..1, times are seconds.

    `possible` is the hit share of one endless cache for all. `spread` is the open requests of the busiest engine
    over the mean, in windows of 10 s, on average; `busiest` is the same over the whole trial.
    """

    policy: str
    nodes: int
    requests: int
    unanswered: int
    hits: float
    possible: float
    ttft_mean_s: float
    ttft_p50_s: float
    ttft_p99_s: float
    spread: float
    busiest: float
    open_mean: float


@dataclass
class Seen:
    """Measurements as they come; of counted requests only."""

    policy: str
    nodes: int
    block: int
    prompt: int = 0
    cached: int = 0
    ttft_s: list[float] = field(default_factory=list)
    asked: int = 0
    looks: list[list[int]] = field(default_factory=list)
    """The open requests of every engine, twice a second."""
    _possible: int = 0
    _ever: set[int] = field(default_factory=set)

    def asks(self, turn: Turn, *, counts: bool) -> None:
        """Note a request, in the order of sending."""
        whole = (turn.prompt - 1) // self.block
        known = 0
        while known < whole and turn.keys[known] in self._ever:
            known += 1
        self._ever.update(turn.keys[known:])
        if counts:
            self.asked += 1
            self._possible += known * self.block
            self.prompt += turn.prompt

    def answered(self, cached: int, ttft_s: float) -> None:
        """Note the first token of a request that counts."""
        self.cached += cached
        self.ttft_s.append(ttft_s)

    def result(self) -> Result:
        """Return the figures."""
        return Result(
            policy=self.policy,
            nodes=self.nodes,
            requests=self.asked,
            unanswered=self.asked - len(self.ttft_s),
            hits=self.cached / self.prompt,
            possible=self._possible / self.prompt,
            ttft_mean_s=fmean(self.ttft_s),
            ttft_p50_s=percentile(self.ttft_s, 0.5),
            ttft_p99_s=percentile(self.ttft_s, 0.99),
            spread=spread(self.looks),
            busiest=spread([[sum(column) for column in zip(*self.looks, strict=True)]], 1),
            open_mean=fmean(fmean(look) for look in self.looks),
        )


def spread(looks: Sequence[Sequence[int]], window: int = _LOOKS_A_WINDOW) -> float:
    """Return the largest of the engines over their mean, in windows of so many samples, on
    average.
    """
    found = []
    for at in range(0, len(looks) - window + 1, window):
        sums = [sum(column) for column in zip(*looks[at : at + window], strict=True)]
        if any(sums):
            found.append(max(sums) / fmean(sums))
    return fmean(found) if found else 1.0
