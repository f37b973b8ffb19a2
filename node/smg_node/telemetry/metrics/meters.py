"""Meters of a node: all its metric series, the methods that count into them, and the scrape page.

Series live in one registry object that the wiring makes and passes around; nothing is global. Label
children are looked up once and kept, because `labels()` costs more than the increment it leads to.
Every label is bounded: a client who invents models, parameters or methods cannot invent series.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import compress, groupby, repeat
from operator import attrgetter, is_not, sub, truediv
from typing import Final, TypeAlias

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
)
from prometheus_client.metrics_core import (
    Metric as Family,
)
from prometheus_client.registry import Collector

from smg_node.core.generation.outcome import Outcome
from smg_node.telemetry.metrics.cells import Cells, Spread, Tally
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import store as store_metrics
from smg_node.telemetry.metrics.declared.mcp import TOOL_PASSES
from smg_node.telemetry.metrics.declared.providers import SPLIT_REQUESTS
from smg_node.telemetry.metrics.metric import Metric

Reading: TypeAlias = Callable[[], Mapping[tuple[str, ...], float]]
"""Reads a pulled metric: label values to value; the empty tuple for a metric without labels."""

LABEL_VALUES_MAX: Final = 100
"""How many values of an open-ended label get a series of their own."""
MODELS_MAX: Final = 1000
"""How many models get series of their own, each about 70 lines of a scrape."""
TENANTS_MAX: Final = 1000
"""How many tenants get series of their own, each a handful of lines of a scrape."""
AT_ONCE: Final = 64
"""So many generations are counted together: one by one, between everything else, each takes three times as long."""
UNKNOWN: Final = "unknown"
OTHER: Final = "other"
_OF_THE_PROCESS: Final = "process_"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = logging.getLogger("smg_node.telemetry")


_alike: Final = attrgetter("dialect", "model", "kind", "error_code")
_prompt_of: Final = attrgetter("prompt_tokens")
_cached_of: Final = attrgetter("cached_tokens")
_completion_of: Final = attrgetter("completion_tokens")
_received_of: Final = attrgetter("received_s")
_first_of: Final = attrgetter("first_token_s")
_ended_of: Final = attrgetter("ended_s")
_continuations_of: Final = attrgetter("continuations")
_oddities_of: Final = attrgetter("oddities")
_split_of: Final = attrgetter("split")
_passes_of: Final = attrgetter("passes")
_paused_of: Final = attrgetter("paused_s")


class _Model:
    """The series of one model."""

    __slots__ = ("cached", "completion", "continuations", "duration", "prompt", "tpot", "ttft")

    def __init__(self, cells: Cells, model: str) -> None:
        self.prompt = cells.tally(declared.PROMPT_TOKENS, model)
        self.cached = cells.tally(declared.CACHED_TOKENS, model)
        self.completion = cells.tally(declared.COMPLETION_TOKENS, model)
        self.continuations = cells.tally(declared.CONTINUATIONS, model)
        self.duration = cells.spread(declared.GENERATION_SECONDS, model)
        self.ttft = cells.spread(declared.TTFT_SECONDS, model)
        self.tpot = cells.spread(declared.TPOT_SECONDS, model)


class _Pulled(Collector):
    """Collector of the pulled metrics, read at scrape time."""

    def __init__(self, failed: Callable[[Metric], None]) -> None:
        self._readings: dict[Metric, list[Reading]] = {}
        self._failed = failed

    def add(self, metric: Metric, read: Reading) -> None:
        """Read `metric` from `read` as well; readings of the same labels add up."""
        self._readings.setdefault(metric, []).append(read)

    def describe(self) -> list[Family]:
        """Name nothing ahead of time: a registry must not read parts that are not built yet."""
        return []

    def collect(self) -> Iterator[Family]:
        """Yield one family per pulled metric that has a source."""
        for metric, readings in self._readings.items():
            yield self._family(metric, readings)

    def families(self, names: Collection[str]) -> Iterator[Family]:
        """Yield those of the metrics of these names that have a source; no other one is read."""
        for metric, readings in self._readings.items():
            if metric.name in names:
                yield self._family(metric, readings)

    def _family(self, metric: Metric, readings: list[Reading]) -> Family:
        totals: dict[tuple[str, ...], float] = {}
        for read in readings:
            try:
                for labels, value in read().items():
                    totals[labels] = totals.get(labels, 0.0) + value
            except Exception:
                # A boundary: one part that cannot be read must not hide the rest from the operator.
                _log.exception("metric %s cannot be read", metric.name)
                self._failed(metric)
        make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = make(metric.name, metric.meaning, labels=metric.labels)
        for labels in sorted(totals):
            family.add_metric(labels, totals[labels])
        return family


class Meters:
    """All measurements of one node.

    `known_model` says whether a model name deserves a series; others are counted as `unknown`.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        version: str,
        known_model: Callable[[str], bool] = lambda name: True,
    ) -> None:
        # Creation times would double the number of series, and they are not read.
        disable_created_metrics()  # type: ignore[no-untyped-call] # it has no annotations
        self.registry = registry
        self.cells: Final = Cells(declared.METRICS, before=self._count_generations)
        registry.register(self.cells)
        self._known_model = known_model
        self._models: dict[str, _Model] = {}
        self._over: list[Outcome] = []
        """Generations that are to be counted."""
        self._generations: dict[tuple[str, str, str, str], tuple[Tally, _Model]] = {}
        self._requests: dict[tuple[str, str, int], tuple[Tally, Spread]] = {}
        self._tenants: dict[str, dict[int, Tally]] = {}
        self._engine_errors: dict[tuple[str, str], Tally] = {}
        self._ignored: dict[str, Tally] = {}
        self._stores: dict[tuple[str, str], tuple[Tally, Spread]] = {}
        self._codes: set[str] = set()
        self._joined = self.cells.tally(declared.JOINED_EVENTS)
        self._lag = self.cells.spread(declared.LOOP_LAG_SECONDS)
        self._stalls = self.cells.tally(declared.LOOP_STALLS)
        self.cells.tally(declared.BUILD, version).value = 1
        self._pulled = _Pulled(self._unreadable)
        registry.register(self._pulled)
        self._process: Final = ProcessCollector(registry=registry)
        GCCollector(registry=registry)

    def watch(self, metric: Metric, read: Reading) -> None:
        """Read a pulled metric from `read` at every scrape; several readings add up."""
        assert metric.pulled, metric.name
        self._pulled.add(metric, read)

    def generation(self, outcome: Outcome) -> None:
        """Count one finished generation, its tokens and its times: soon, and before the counts are
        read.
        """
        self._over.append(outcome)
        if len(self._over) >= AT_ONCE:
            self._count_generations()

    def _count_generations(self) -> None:
        over, self._over = self._over, []
        for key, several in groupby(over, _alike):
            self._count_alike(key, list(several))

    def _count_alike(self, key: tuple[str, str, str, str], over: list[Outcome]) -> None:
        """Count generations of one dialect and model that ended in the same way, column by column."""
        count, series = self._generations.get(key) or self._generation(key)
        count.value += len(over)
        series.prompt.value += sum(map(_prompt_of, over))
        series.cached.value += sum(map(_cached_of, over))
        series.completion.value += sum(map(_completion_of, over))
        series.duration.add(map(sub, map(_ended_of, over), map(_received_of, over)))
        begun = list(compress(over, map(is_not, map(_first_of, over), repeat(None))))
        series.ttft.add(map(sub, map(_first_of, begun), map(_received_of, begun)))
        # Seconds per token after the first, of those that have more than one.
        longer = list(compress(begun, map((1).__lt__, map(_completion_of, begun))))
        took_s = map(sub, map(_ended_of, longer), map(_first_of, longer))
        if any(map(_passes_of, over)):
            model = self._label(over[0].model)
            self.cells.tally(TOOL_PASSES, model).inc(sum(map(_passes_of, over)))
            # While tools ran it did not speak.
            took_s = map(sub, took_s, map(_paused_of, longer))
        series.tpot.add(map(truediv, took_s, map((-1).__add__, map(_completion_of, longer))))
        if any(map(_continuations_of, over)):
            series.continuations.inc(sum(map(_continuations_of, over)))
        if any(map(_split_of, over)):
            model = self._label(over[0].model)
            for outcome in filter(_split_of, over):
                self.cells.tally(SPLIT_REQUESTS, model, outcome.split, outcome.kind).inc()
        if any(map(_oddities_of, over)):
            model = self._label(over[0].model)
            for outcome in over:
                for what, times in outcome.oddities.items():
                    self.cells.tally(declared.ODDITIES, model, what).inc(times)

    def http(self, route: str, method: str, status: int, duration_s: float) -> None:
        """Count one answered request. `route` is a path of the route table, never a client's path."""
        count, duration = self.requests(route, method, status)
        count.value += 1
        duration.observe(duration_s)

    def requests(self, route: str, method: str, status: int) -> tuple[Tally, Spread]:
        """Return where answered requests of one kind are counted, and their times; as for `http`."""
        return self._requests.get((route, method, status)) or self._request(route, method, status)

    def tenant_requests(self, tenant: str, status: int) -> Tally:
        """Return where answered requests of a tenant are counted; tenants after the first 1,000 are counted together."""
        counters = self._tenants.get(tenant)
        if counters is None:
            if len(self._tenants) >= TENANTS_MAX:
                tenant = OTHER
            counters = self._tenants.setdefault(tenant, {})
        counter = counters.get(status)
        if counter is None:
            counter = self.cells.tally(declared.TENANT_REQUESTS, tenant, str(status))
            counters[status] = counter
        return counter

    def connection_refused(self, reason: str) -> None:
        """Count a connection that a limit turned away; `reason` is one of our own few words."""
        self.cells.tally(declared.HTTP_REFUSED, reason).inc()

    def engine_error(self, contract: str, status: str) -> None:
        """Count one failed engine call by contract and gRPC status name."""
        key = (contract, status)
        counter = self._engine_errors.get(key)
        if counter is None:
            counter = self.cells.tally(declared.ENGINE_ERRORS, contract, status)
            self._engine_errors[key] = counter
        counter.inc()

    def ignored_parameter(self, name: str) -> None:
        """Count a parameter without effect; names after the first 100 are counted together."""
        counter = self._ignored.get(name)
        if counter is None:
            if len(self._ignored) >= LABEL_VALUES_MAX:
                self.cells.tally(declared.IGNORED_PARAMETERS, OTHER).inc()
                return
            counter = self.cells.tally(declared.IGNORED_PARAMETERS, name[:64])
            self._ignored[name] = counter
        counter.inc()

    def joined_events(self, count: int) -> None:
        """Count events of streams that became part of another one."""
        self._joined.inc(count)

    def store_operation(self, operation: str, outcome: str, duration_s: float) -> None:
        """Count one operation of the store; both words are of a few of our own."""
        key = (operation, outcome)
        series = self._stores.get(key)
        if series is None:
            counter = self.cells.tally(store_metrics.STORE_OPERATIONS, operation, outcome)
            duration = self.cells.spread(store_metrics.STORE_SECONDS, operation)
            series = self._stores[key] = (counter, duration)
        series[0].inc()
        series[1].observe(duration_s)

    def store_asked(self, operation: str, outcome: str, duration_s: float) -> None:
        """Count one query to the node that holds a thread; both words are of a few of our own."""
        self.cells.tally(store_metrics.STORE_ASKED, operation, outcome).inc()
        self.cells.spread(store_metrics.STORE_ASKED_SECONDS, operation).observe(duration_s)

    def chain_depth(self, depth: int) -> None:
        """Observe how many responses precede one in its chain."""
        self.cells.spread(store_metrics.STORE_CHAIN_DEPTH).observe(depth)

    def loop_lag(self, lag_s: float) -> None:
        """Observe how late the event loop was."""
        self._lag.observe(lag_s)

    def loop_stall(self) -> None:
        """Count one stall of over 100 ms."""
        self._stalls.inc()

    def families(self, names: Collection[str]) -> Iterator[Family]:
        """Yield the metrics of these names, those of the process too; only what they need is read."""
        yield from self.cells.families(names)
        yield from self._pulled.families(names)
        if any(name.startswith(_OF_THE_PROCESS) for name in names):
            # Its counters are named without what a page puts behind them.
            wanted = {name.removesuffix("_total") for name in names}
            yield from (one for one in self._process.collect() if one.name in wanted)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the page for a scraper that sends this `accept` header, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def _request(self, route: str, method: str, status: int) -> tuple[Tally, Spread]:
        """Return where such requests are counted; kept for methods that are ours."""
        known = method if method in _METHODS else OTHER
        found = (
            self.cells.tally(declared.HTTP_REQUESTS, route, known, str(status)),
            self.cells.spread(declared.HTTP_SECONDS, route),
        )
        if known == method:
            self._requests[route, method, status] = found
        return found

    def _label(self, model: str) -> str:
        if not self._known_model(model):
            return UNKNOWN
        full = len(self._models) >= MODELS_MAX and model not in self._models
        return OTHER if full else model

    def _unreadable(self, metric: Metric) -> None:
        self.cells.tally(declared.SCRAPE_ERRORS, metric.name).inc()

    def _model(self, model: str) -> _Model:
        series = self._models.get(model)
        if series is None:
            series = self._models[model] = _Model(self.cells, model)
        return series

    def _generation(self, key: tuple[str, str, str, str]) -> tuple[Tally, _Model]:
        """Return where generations of a dialect and a model with that end are counted; kept for names that are ours."""
        dialect, name, kind, code = key
        model = self._label(name)
        if code not in self._codes and len(self._codes) >= LABEL_VALUES_MAX:
            code = OTHER
        self._codes.add(code)
        found = (
            self.cells.tally(declared.GENERATIONS, dialect, model, kind, code),
            self._model(model),
        )
        if code != OTHER and model == name:
            self._generations[key] = found
        return found
