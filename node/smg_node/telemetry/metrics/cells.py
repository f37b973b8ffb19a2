"""Cells of metrics: counters, gauges and histograms as plain numbers, rendered when a scrape reads.

A cell belongs to the loop: no other thread writes to it, so it needs no lock, and code that holds
one may add to `value` directly (0.03 µs, where the counter of a Prometheus client takes 0.3 and its
histogram 0.9). Cells are looked up once and kept, because finding one by its labels costs more than
adding to it.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from smg_node.telemetry.metrics.metric import Metric

LATE_MAX: Final = 128
"""So many amounts of a spread wait to be counted in, at most."""


class Tally:
    """Cell of a counter or gauge: one number; of a counter it only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Add `amount`, which is not negative."""
        assert amount >= 0, "a counter only grows"
        self.value += amount


class Spread:
    """Cell of a histogram: counts by bucket, and the sum.

    `bounds` are upper ones, with one more number of what is above all. Amounts are counted in
    together, a hundred in sorted order for less than five one by one: code that holds a cell may
    append to `late` directly, and settles it when `LATE_MAX` wait there.
    """

    __slots__ = ("_counts", "_sum", "bounds", "late")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: Final = tuple(bounds)
        self.late: list[float] = []
        """What is not counted in yet."""
        self._counts = [0] * (len(self.bounds) + 1)
        self._sum = 0.0

    def observe(self, amount: float) -> None:
        """Count one of that size in."""
        late = self.late
        late.append(amount)
        if len(late) >= LATE_MAX:
            self.settle()

    def add(self, amounts: Iterable[float]) -> None:
        """Count several in."""
        self.late += amounts
        if len(self.late) >= LATE_MAX:
            self.settle()

    def settle(self) -> None:
        """Count the amounts in `late` in."""
        late, counts = self.late, self._counts
        # In the order in which they came: a sum of floats depends on it.
        self._sum = sum(late, self._sum)
        late.sort()
        before = 0
        for place, bound in enumerate(self.bounds):
            if before == len(late):
                break
            up_to = bisect_right(late, bound, before)
            counts[place] += up_to - before
            before = up_to
        counts[-1] += len(late) - before
        late.clear()

    @property
    def counts(self) -> Sequence[int]:
        """Counts by bucket."""
        self.settle()
        return self._counts

    @property
    def sum(self) -> float:
        """Sum of all amounts."""
        self.settle()
        return self._sum

    def buckets(self) -> list[tuple[str, float]]:
        """Return each upper bound, as a page spells it, with how many were not above it."""
        found: list[tuple[str, float]] = []
        so_far = 0.0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            so_far += count
            spelled = floatToGoString(bound)  # type: ignore[no-untyped-call]  # it has no annotations
            found.append((spelled, so_far))
        return found


class Cells(Collector):
    """Cells of the pushed metrics, by their labels, in the order in which those were declared.

    A metric without labels is there from the start, at zero; one with labels has a cell from its
    first look-up. Code that adds to them later than things happen does so in `before`, which is
    called before every read.
    """

    def __init__(self, metrics: Iterable[Metric], *, before: Callable[[], None]) -> None:
        self._before: Final = before
        self._tallies: dict[Metric, dict[tuple[str, ...], Tally]] = {}
        self._spreads: dict[Metric, dict[tuple[str, ...], Spread]] = {}
        self._metrics: Final = tuple(metric for metric in metrics if not metric.pulled)
        for metric in self._metrics:
            if metric.kind == "histogram":
                self._spreads[metric] = {} if metric.labels else {(): Spread(metric.buckets)}
            else:
                self._tallies[metric] = {} if metric.labels else {(): Tally()}

    def tally(self, metric: Metric, *labels: str) -> Tally:
        """Return the cell of a counter or a gauge for these label values."""
        assert len(labels) == len(metric.labels)
        cells = self._tallies[metric]
        cell = cells.get(labels)
        if cell is None:
            cell = cells[labels] = Tally()
        return cell

    def spread(self, metric: Metric, *labels: str) -> Spread:
        """Return the cell of a histogram for these label values."""
        assert len(labels) == len(metric.labels)
        cells = self._spreads[metric]
        cell = cells.get(labels)
        if cell is None:
            cell = cells[labels] = Spread(metric.buckets)
        return cell

    def tallies(self, metric: Metric) -> Mapping[tuple[str, ...], Tally]:
        """Return all cells of a counter or a gauge, by label values; not to be changed."""
        self._before()
        return self._tallies[metric]

    def spreads(self, metric: Metric) -> Mapping[tuple[str, ...], Spread]:
        """Return all cells of a histogram, by label values; not to be changed."""
        self._before()
        return self._spreads[metric]

    def describe(self) -> list[Family]:
        """Name nothing ahead of time; see `meters`."""
        return []

    def collect(self) -> Iterator[Family]:
        """Return one family for each metric."""
        self._before()
        return map(self._family, self._metrics)

    def families(self, names: Collection[str]) -> Iterator[Family]:
        """Return those of the metrics of these names."""
        self._before()
        return (self._family(metric) for metric in self._metrics if metric.name in names)

    def _family(self, metric: Metric) -> Family:
        return self._of_spreads(metric) if metric.kind == "histogram" else self._of_tallies(metric)

    def _of_tallies(self, metric: Metric) -> Family:
        make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = make(metric.name, metric.meaning, labels=metric.labels)
        for labels, cell in self._tallies[metric].items():
            family.add_metric(labels, cell.value)
        return family

    def _of_spreads(self, metric: Metric) -> Family:
        family = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        for labels, cell in self._spreads[metric].items():
            family.add_metric(labels, cell.buckets(), cell.sum)
        return family
