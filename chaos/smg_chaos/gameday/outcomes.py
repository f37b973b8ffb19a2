"""Outcomes of scenarios: the figures of each system side by side, and the verdict on our own."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from smg_chaos.statistics import Figure


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one scenario on one system. `failed`: why there are no figures, or nothing."""

    scenario: str
    system: str
    is_ours: bool
    figures: tuple[Figure, ...]
    failed: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it came to an end and met all its targets."""
        return not self.failed and all(figure.is_met for figure in self.figures)


def verdict(outcomes: Sequence[Outcome]) -> bool:
    """Return whether our own systems met every target; those of others do not count."""
    return all(outcome.is_good for outcome in outcomes if outcome.is_ours)


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the outcomes as JSON."""
    return [
        {
            **asdict(outcome),
            "figures": [{**asdict(one), "is_met": one.is_met} for one in outcome.figures],
        }
        for outcome in outcomes
    ]


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return one row per metric: its target, the figure of each system, and the verdict on ours."""
    systems = list(dict.fromkeys(outcome.system for outcome in outcomes))
    stretched = any(one.stretch is not None for outcome in outcomes for one in outcome.figures)
    shown = Table(header_style="bold", show_lines=False)
    shown.add_column("scenario", no_wrap=True)
    shown.add_column("metric")
    for column in ("today", "must", "stretch") if stretched else ("target",):
        shown.add_column(column, justify="right", no_wrap=True)
    for system in systems:
        shown.add_column(system, justify="right")
    shown.add_column("verdict", no_wrap=True)
    for scenario in dict.fromkeys(outcome.scenario for outcome in outcomes):
        of_system = {one.system: one for one in outcomes if one.scenario == scenario}
        _add_scenario(shown, scenario, of_system, systems, _stretched if stretched else _plain)
    return shown


def _add_scenario(
    shown: Table,
    scenario: str,
    of_system: dict[str, Outcome],
    systems: Sequence[str],
    targets: Callable[[Figure | None], Sequence[str]],
) -> None:
    figures = {
        (system, figure.metric): figure
        for system, outcome in of_system.items()
        for figure in outcome.figures
    }
    first = scenario
    for metric in dict.fromkeys(metric for _, metric in figures):
        row = [figures.get((system, metric)) for system in systems]
        known = next(figure for figure in row if figure is not None)
        ours = [
            figure
            for system, figure in zip(systems, row, strict=True)
            if figure is not None and of_system[system].is_ours
        ]
        cells = [_cell(figure) for figure in row]
        shown.add_row(first, metric, *targets(known), *cells, _word(known, ours))
        first = ""
    for system, outcome in of_system.items():
        if outcome.failed:
            why = outcome.failed.partition("\n")[0]  # the rest is in the file and was said before
            cells = [why if system == one else "" for one in systems]
            word = "MISSED" if outcome.is_ours else ""
            shown.add_row(first, "did not end", *targets(None), *cells, word)
            first = ""
    shown.add_section()


def _word(known: Figure, ours: Sequence[Figure]) -> str:
    if not known.has_target or not ours:
        return ""
    return "met" if all(figure.is_met for figure in ours) else "MISSED"


def _plain(figure: Figure | None) -> Sequence[str]:
    """Return the cells of a target in a table without stretch targets."""
    return [_target(figure)]


def _stretched(figure: Figure | None) -> Sequence[str]:
    """Return what was measured before, the target, and the one beyond it."""
    if figure is None:
        return ["", "", ""]
    return [figure.before, _target(figure), _bound(figure, figure.stretch)]


def _target(figure: Figure | None) -> str:
    if figure is None:
        return ""
    return _bound(figure, figure.limit if figure.least is None else figure.least)


def _bound(figure: Figure, value: float | None) -> str:
    if value is None:
        return ""
    sign = "≤" if figure.least is None else "≥"
    return f"{sign} {_number(value)} {figure.unit}".rstrip()


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    told = "never" if figure.value is None else f"{_number(figure.value)} {figure.unit}".rstrip()
    return f"{told} ({figure.says})" if figure.says else told


def _number(value: float) -> str:
    if value == int(value):
        return str(int(value))
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"
