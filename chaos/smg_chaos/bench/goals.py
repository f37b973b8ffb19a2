"""Goals: limits on this gateway's cost as a ratio to the reference gateway, judged on one
interleaved run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from smg_chaos.bench.figures.rows import SPREAD_MAX, Figure
from smg_chaos.bench.gateways.gateways import EQUIPPED
from smg_chaos.bench.load.workloads import DISTINCT

REFERENCE: Final = "smg"
REFERENCE_CACHED: Final = "smg-cached"
COMMON: Final = "litellm"
"""What many use in its place; it is compared with in a run of its own, since it cannot keep the others' pace."""

MEMORY_WORKLOAD: Final = "distinct"
PROMPTS_MIN: Final = DISTINCT
"""Distinct prompts that a gateway must have seen when its memory is told, and no more: a quick one would have seen more."""

Verdict: TypeAlias = Literal["stretch", "pass", "short", "no result"]


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio to another gateway that must not be exceeded, and one that is aimed at."""

    axis: str
    workload: str
    must: float
    stretch: float
    base: str = REFERENCE
    than: str = ""
    """Another workload of this gateway, where that is what it is compared with."""
    of: Literal["figure", "memory", "peak"] = "figure"
    """What the workload is measured by; or memory of the process tree when all prompts were seen: steady, with
    shared pages counted once, or the sum of what each process had at its peak, less what they share."""


GOALS: Final = (
    Goal("short chat, not streamed", "short", 0.60, 0.35),
    Goal("streamed request, 1 token", "stream1", 0.60, 0.40),
    Goal("token, paced 20 ms, 64 streams", "paced-64", 0.90, 0.65),
    Goal("token, paced 20 ms, 256 streams", "paced-256", 1.0, 0.75),
    Goal("token, burst", "burst", 1.3, 0.8),
    Goal("Messages: short, not streamed", "messages-short", 0.60, 0.45),
    Goal("Messages: token, paced 20 ms, 64 streams", "messages-paced-64", 0.90, 0.65),
    Goal(
        "Messages: token, beside our Chat",
        "messages-paced-64",
        1.05,
        1.0,
        EQUIPPED,
        than="paced-64",
    ),
    Goal(
        "Interactions: token, beside our resumable Responses",
        "interactions-paced-64",
        1.10,
        1.0,
        EQUIPPED,
        than="responses-paced-64",
    ),
    Goal("32 KB prompt, never seen", "documents", 0.50, 0.30),
    Goal("32 KB prompt, never seen, with caches", "documents", 0.70, 0.50, REFERENCE_CACHED),
    Goal("8 k prompt, both with caches", "cycled", 0.70, 0.50, REFERENCE_CACHED),
    Goal("time to first token that is added, idle, p50", "idle", 0.60, 0.35),
    Goal("time to first token, mixed load, p99", "mixed", 1.0, 0.7),
    Goal("memory after 5,000 prompts of 32 KB, steady", MEMORY_WORKLOAD, 1.1, 0.9, of="memory"),
    Goal("memory after 5,000 prompts of 32 KB, at its peak", MEMORY_WORKLOAD, 1.1, 0.9, of="peak"),
    Goal("litellm: short chat", "short", 1 / 50, 1 / 100, COMMON),
    Goal("litellm: token, paced, 32 streams", "paced-32", 1 / 15, 1 / 30, COMMON),
    Goal("litellm: native to a vendor, short", "vendor-native", 0.10, 0.05, COMMON),
    Goal("litellm: translated to a vendor, short", "vendor-translated", 0.15, 0.08, COMMON),
    Goal("litellm: native event of a vendor, paced", "vendor-native-paced", 0.10, 0.05, COMMON),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged goal. `ours` and `theirs` are medians; `spread` is the larger of both."""

    goal: Goal
    verdict: Verdict
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    spread: float | None = None
    unit: str = ""
    why: str = ""
    """Why there is no result."""
    anew: bool = False
    """Whether there was none at first, and it was measured once more."""

    @property
    def short(self) -> bool:
        """Whether the required ratio is missed or unknown."""
        return self.verdict in ("short", "no result")


def judged(
    goals: Sequence[Goal], figures: Mapping[str, Sequence[Figure]], ours: str
) -> list[Judged]:
    """Return the verdicts on goals; `figures` are by the gateway that their ratios are to."""
    return [
        _judged(goal, figures.get(REFERENCE if goal.than else goal.base, ()), ours)
        for goal in goals
    ]


def _judged(goal: Goal, figures: Sequence[Figure], ours: str) -> Judged:
    if goal.than:
        return _beside_itself(goal, figures, ours)
    of_workload = {one.gateway: one for one in figures if one.workload == goal.workload}
    mine, theirs = of_workload.get(ours), of_workload.get(goal.base)
    if mine is None or theirs is None:
        return Judged(goal, "no result", why="not measured")
    if goal.of != "figure":
        return _of_memory(goal, mine, theirs)
    spreads = [one.spread for one in (mine, theirs) if one.spread is not None]
    verdict, why = _of_figure(goal, mine, theirs)
    spread = max(spreads, default=None)
    return Judged(goal, verdict, mine.median, theirs.median, mine.ratio, spread, mine.unit, why)


def _beside_itself(goal: Goal, figures: Sequence[Figure], ours: str) -> Judged:
    mine, other = (
        next((one for one in figures if (one.gateway, one.workload) == (ours, name)), None)
        for name in (goal.workload, goal.than)
    )
    if mine is None or other is None or mine.median is None or not other.median:
        return Judged(goal, "no result", why="not measured")
    ratio = mine.median / other.median
    spread = max((one.spread for one in (mine, other) if one.spread is not None), default=None)
    result = mine.result and other.result
    verdict, why = (_verdict(goal, ratio), "") if result else ("no result", "too few rounds count")
    return Judged(goal, verdict, mine.median, other.median, ratio, spread, mine.unit, why)


def _of_figure(goal: Goal, mine: Figure, theirs: Figure) -> tuple[Verdict, str]:
    for one in (mine, theirs):
        if not one.result and one.spread is not None and one.spread > SPREAD_MAX:
            return "no result", f"{one.gateway} spread by {one.spread:.0%}"
    if mine.ratio is None or not mine.result or not theirs.result:
        return "no result", "too few rounds count"
    return _verdict(goal, mine.ratio), ""


def _of_memory(goal: Goal, mine: Figure, theirs: Figure) -> Judged:
    ours_mb, theirs_mb = (
        one.peak_mb if goal.of == "peak" else one.steady_mb for one in (mine, theirs)
    )
    if not ours_mb or not theirs_mb:
        return Judged(goal, "no result", unit="MB", why="memory was not told")
    ratio = ours_mb / theirs_mb
    if (seen := min(mine.requests, theirs.requests)) < PROMPTS_MIN:
        why = f"only {seen:,} prompts"
        return Judged(goal, "no result", ours_mb, theirs_mb, ratio, unit="MB", why=why)
    return Judged(goal, _verdict(goal, ratio), ours_mb, theirs_mb, ratio, unit="MB")


def _verdict(goal: Goal, ratio: float) -> Verdict:
    if ratio <= goal.stretch:
        return "stretch"
    return "pass" if ratio <= goal.must else "short"
