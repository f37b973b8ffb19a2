"""Metrics merge: one page for a node of several processes, from what all of them count. Pure.

    counter, histogram   add up; those of a dead process stay as last reported, so that they never fall
    gauge                by its declaration: the sum, the largest, or the control process's value

Of the metrics of processes themselves (`process_*`, `python_gc_*`) time, memory and files add up,
so that pages that they share are counted more than once.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from prometheus_client.metrics_core import Metric as Family

from smg_node.processes.reports.metric_series import Counted, Series, counted, family_of
from smg_node.telemetry.metrics.declared.node import METRICS
from smg_node.telemetry.metrics.metric import Merge

_OF_PROCESSES: Final[Mapping[str, Merge]] = {
    "process_start_time_seconds": "control",
    "process_max_fds": "max",
    "python_info": "control",
}
_RULES: Final[Mapping[str, Merge]] = {
    **{metric.name: metric.merge for metric in METRICS if metric.kind == "gauge"},
    **_OF_PROCESSES,
}
_GROWS: Final = ("counter", "histogram")

Values: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Merging:
    """Keeps each process's last report, and the counts of those that are gone."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, Counted]] = {}
        self._past: dict[str, Counted] = {}
        """Of processes that are gone, by metric: only what never falls."""

    def heard(self, process: str, metrics: Sequence[Counted]) -> None:
        """Take a process's report: all metrics, or some; the others stay as last reported."""
        self._said.setdefault(process, {}).update({metric.name: metric for metric in metrics})

    def gone(self, process: str) -> None:
        """Note that a process has ended: its counters stay, its gauges go."""
        for metric in self._said.pop(process, {}).values():
            if metric.kind not in _GROWS:
                continue
            before = self._past.get(metric.name)
            values: Values = {}
            _add(values, () if before is None else before.series)
            _add(values, metric.series)
            series = [Series(name, dict(labels), value) for (name, labels), value in values.items()]
            self._past[metric.name] = Counted(metric.name, metric.kind, metric.meaning, series)

    def families(
        self, own: Iterable[Family], wanted: Collection[str] | None = None
    ) -> Iterator[Family]:
        """Yield all metrics, merged over all processes; `own` are this one's.

        `wanted` are the families to be returned, None for all.
        """
        named: dict[str, list[Counted]] = {}
        mine = counted(own)
        for metric in mine:
            named[metric.name] = [metric]
        for metrics in (
            *(self._said[process].values() for process in sorted(self._said)),
            self._past.values(),
        ):
            for metric in metrics:
                if wanted is not None and metric.name not in wanted:
                    continue
                named.setdefault(metric.name, []).append(metric)
        here = {metric.name for metric in mine}
        for name, found in named.items():
            yield family_of(found[0], _merged(found, controls=name in here))


def _merged(found: Sequence[Counted], *, controls: bool) -> Values:
    """Return one metric's values; the first is the control process's where that `controls`."""
    first, *others = found
    rule: Merge = "sum" if first.kind in _GROWS else _RULES.get(first.name, "sum")
    values: Values = {}
    _add(values, first.series)
    if rule == "control" and controls and first.series:
        return values
    for metric in others:
        if metric.kind != first.kind:
            continue
        if rule == "sum":
            _add(values, metric.series)
        else:
            choose = min if rule == "min" else max
            for one in metric.series:
                values[one.key] = choose(one.value, values.get(one.key, one.value))
    return values


def _add(values: Values, series: Iterable[Series]) -> None:
    for one in series:
        values[one.key] = values.get(one.key, 0.0) + one.value
