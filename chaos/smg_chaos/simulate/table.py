"""Tables of figures over many histories, with percentiles, targets and verdicts."""

import math
from collections.abc import Sequence
from typing import Final

from smg_chaos.simulate.outcome import Figures, Outcome, gathered, percentile
from smg_chaos.simulate.scenarios.scenario import Target

_STATISTICS: Final = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))


def number(value: float) -> str:
    """Return a number as people like to read it."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "never"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.3g}"


def figures_table(figures: Figures) -> list[str]:
    """Return a table of figures and their percentiles."""
    lines = [f"  {'':22}{'count':>8}" + "".join(f"{name:>10}" for name, _ in _STATISTICS)]
    for name, values in figures.items():
        shares = "".join(f"{number(percentile(values, share)):>10}" for _, share in _STATISTICS)
        lines.append(f"  {name:22}{len(values):>8}{shares}")
    return lines


def target_line(target: Target, figures: Figures) -> str:
    """Return what a target asked for, what was reached, and whether that is enough."""
    verdict = "ok" if target.met(figures) else "MISSED"
    reached = number(target.reached(figures))
    return f"  {target.figure} {target.of}: {reached} (target {number(target.most)}) {verdict}"


def acceptance_header() -> str:
    """Return the head of the acceptance table."""
    return (
        f"{'scenario':18}{'nodes':>6}{'seeds':>6}  {'figure':22}{'p50':>8}{'p99':>8}{'max':>8}"
        f"{'sum':>7}  {'target':16}verdict"
    )


def acceptance_lines(
    name: str, nodes: int, outcomes: Sequence[Outcome], targets: Sequence[Target]
) -> list[str]:
    """Return one scenario's lines of the acceptance table."""
    figures = gathered(outcomes)
    lines = []
    for target in targets:
        values = figures.get(target.figure, [])
        row = "".join(f"{number(percentile(values, share)):>8}" for share in (0.5, 0.99, 1.0))
        wanted = f"{target.of} <= {number(target.most)}"
        verdict = "ok" if target.met(figures) else "MISSED"
        total = number(sum(values)) if target.of == "sum" else ""
        lines.append(
            f"{name:18}{nodes:>6}{len(outcomes):>6}  {target.figure:22}{row}{total:>7}  "
            f"{wanted:16}{verdict}"
        )
    broken = sum(1 for outcome in outcomes if outcome.broken)
    if broken:
        lines.append(f"{name:18}{nodes:>6}{len(outcomes):>6}  {broken} with broken promises")
    return lines


def cost_line(outcomes: Sequence[Outcome]) -> str:
    """Return what the histories cost."""
    cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    events = sum(outcome.events for outcome in outcomes)
    each = [outcome.cpu_s for outcome in outcomes]
    per_s = events / cpu_s if cpu_s else 0.0
    return (
        f"cost: {per_s / 1000:.0f} k events/s, {events / max(1, len(outcomes)):.0f} events and "
        f"{percentile(each, 0.5):.3f} s of CPU per seed (p99 {percentile(each, 0.99):.3f})"
    )
