"""Panels of a dashboard: boards, sections, panels and queries, and functions that write PromQL.

Queries are made of declared metrics, never of their names, and every one of them goes by the job and the nodes that
are chosen above the dashboard.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from smg_node.telemetry.metrics.metric import Metric

Unit: TypeAlias = Literal["short", "reqps", "cps", "s", "bytes", "Bps", "percentunit", "bool"]
"""How numbers are shown, in Grafana's own words: a number, requests or things a second, seconds, bytes, a part of 1."""
Kind: TypeAlias = Literal["timeseries", "stat", "table"]

CHOSEN: Final = 'job=~"$job",instance=~"$node"'
"""Those that are chosen above the dashboard."""
SPAN: Final = "$__rate_interval"
"""At least four scrapes; Grafana knows how long that is."""
WIDTH: Final = 24
"""Columns of a dashboard."""


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL expression, and the name of its series: a text with `{{label}}` in it."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `meaning` is what it shows, and when it is worth a look; it stands behind the
    panel's question mark.
    """

    title: str
    meaning: str
    unit: Unit
    queries: tuple[Query, ...]
    kind: Kind = "timeseries"
    width: int = 8
    most: float | None = None
    """The top of its scale, where there is one."""


@dataclass(frozen=True, slots=True)
class Section:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard; `name` is its file's name, and part of its address."""

    name: str
    title: str
    meaning: str
    sections: tuple[Section, ...]


def total(metric: Metric, *by: str, **wanted: str) -> Query:
    """Return the sum of a gauge by these labels, `instance` among them if it is by node."""
    return Query(f"{_sum(by)}({_series(metric, wanted)})", _legend(metric, by))


def largest(metric: Metric, *by: str, **wanted: str) -> Query:
    """Return the largest of a gauge by these labels."""
    return Query(f"max{_by(by)} ({_series(metric, wanted)})", _legend(metric, by))


def smallest(metric: Metric, *by: str, **wanted: str) -> Query:
    """Return the smallest of a gauge by these labels."""
    return Query(f"min{_by(by)} ({_series(metric, wanted)})", _legend(metric, by))


def rate(metric: Metric, *by: str, **wanted: str) -> Query:
    """Return how much a counter grows in a second, by these labels."""
    return Query(f"{_sum(by)}(rate({_series(metric, wanted)}[{SPAN}]))", _legend(metric, by))


def quantile(metric: Metric, part: float, *by: str) -> Query:
    """Return this quantile of a histogram, by these labels."""
    series = f"rate({metric.name}_bucket{{{CHOSEN}}}[{SPAN}])"
    legend = " ".join((f"p{100 * part:g}", *(f"{{{{{label}}}}}" for label in by)))
    expression = f"histogram_quantile({part:g}, sum by ({', '.join(('le', *by))}) ({series}))"
    return Query(expression, legend)


def mean(total_of: Metric, number_of: Metric, *by: str, **wanted: str) -> Query:
    """Return the sum of a histogram divided by its count; `wanted` labels are of the number."""
    return ratio(rate(total_of, *by), rate(number_of, *by, **wanted), "mean", *by)


def ratio(some: Query, whole: Query, legend: str, *by: str) -> Query:
    """Return one query as a part of another one that is by the same labels."""
    text = " ".join((legend, *(f"{{{{{label}}}}}" for label in by)))
    return Query(f"{some.expression} / {whole.expression}", text)


def most(query: Query) -> Query:
    """Return the ten largest series of a query."""
    return Query(f"topk(10, {query.expression})", query.legend)


def called(query: Query, legend: str) -> Query:
    """Return the query under another name."""
    return Query(query.expression, legend)


def or_zero(query: Query) -> Query:
    """Return the query with a zero where it has no result; only for one without labels."""
    return Query(f"{query.expression} or vector(0)", query.legend)


def recorded(name: str, legend: str) -> Query:
    """Return what a recording rule keeps, which is by job and never by node."""
    return Query(f'{name}{{job=~"$job"}}', legend)


def _series(metric: Metric, wanted: dict[str, str]) -> str:
    # `class_` stands for a label that Python has no name for.
    extra = "".join(f',{label.rstrip("_")}=~"{value}"' for label, value in wanted.items())
    return f"{metric.name}{{{CHOSEN}{extra}}}"


def _sum(by: tuple[str, ...]) -> str:
    return f"sum{_by(by)} "


def _by(by: tuple[str, ...]) -> str:
    return f" by ({', '.join(by)})" if by else ""


def _legend(metric: Metric, by: tuple[str, ...]) -> str:
    name = metric.name.removeprefix("smg_node_").removesuffix("_total").replace("_", " ")
    return " ".join(f"{{{{{label}}}}}" for label in by) or name
