"""Placement metrics: gauges of workers, breakers, token caches, retries and waiting requests."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from smg_node.core.ports import Clock
from smg_node.core.request_context import Priority
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.health.circuit_breaker import State
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_roles import ROLES
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placement_request import ObserveEncode
from smg_node.pipeline.placement.placer import Placer
from smg_node.routing.retry_budget import RetryBudgets
from smg_node.routing.wait_queue import ClassCounts
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared import media, resilience
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.meters import Meters, Reading

if TYPE_CHECKING:
    from smg_node.tokens.caches.cached_encoder import CachedEncoder

_STATES: Final[Mapping[State, int]] = {State.CLOSED: 0, State.HALF_OPEN: 1, State.OPEN: 2}


def encode_meter(cells: Cells) -> ObserveEncode:
    """Return what counts pictures that workers encode for others, and the time they take to accept them."""

    def observe(outcome: str, seconds: float) -> None:
        cells.tally(media.ENCODE_ITEMS, outcome).inc()
        cells.spread(media.ENCODE_SECONDS, outcome).observe(seconds)

    return observe


def watch_fleet(meters: Meters, fleet: Fleet, clock: Clock) -> None:
    """Register the metrics of the workers, their breakers, and the token caches of their models."""

    def each(read: Callable[[Worker], float]) -> Reading:
        return lambda: {(worker.url.endpoint,): read(worker) for worker in fleet.workers()}

    def by_status() -> Mapping[tuple[str, ...], float]:
        counts: dict[tuple[str, ...], float] = {(status.value,): 0 for status in Status}
        for worker in fleet.workers():
            counts[(worker.shown_status.value,)] += 1
        return counts

    def by_role() -> Mapping[tuple[str, ...], float]:
        counts: dict[tuple[str, ...], float] = {(role,): 0 for role in ROLES}
        for worker in fleet.workers():
            counts[(worker.role,)] += worker.routable
        return counts

    meters.watch(declared.WORKERS, by_status)
    meters.watch(declared.WORKERS_READY, by_role)
    meters.watch(declared.WORKER_INFLIGHT, each(lambda worker: worker.inflight))
    meters.watch(
        resilience.BREAKER_STATE,
        each(lambda worker: _STATES[worker.breaker.state(clock.monotonic_s())]),
    )
    meters.watch(resilience.BREAKER_OPENED, each(lambda worker: worker.breaker.opened))
    meters.watch(resilience.WORKER_PRESSURE, each(lambda worker: worker.breaker.full.count))
    _watch_encoders(meters, fleet)


def _watch_encoders(meters: Meters, fleet: Fleet) -> None:
    def of_encoders(read: "Callable[[CachedEncoder], Mapping[str, int]]") -> Reading:
        def reading() -> Mapping[tuple[str, ...], float]:
            totals: dict[tuple[str, ...], float] = {}
            for model in fleet.models.all():
                if model.unread is not None:
                    continue
                for level, value in read(model.encoder).items():
                    totals[(level,)] = totals.get((level,), 0) + value
            return totals

        return reading

    meters.watch(
        declared.TOKEN_CACHE_HITS, of_encoders(lambda one: {"l0": one.l0_hits, "l1": one.l1_hits})
    )
    meters.watch(
        declared.TOKEN_CACHE_MISSES,
        of_encoders(lambda one: {"l0": one.l0_misses, "l1": one.l1_misses}),
    )
    meters.watch(declared.TOKEN_CACHE_BYTES, of_encoders(lambda one: {"l1": one.l1_bytes}))


def watch_placing(meters: Meters, placer: Placer, retries: RetryBudgets) -> None:
    """Register the metrics of retries and of requests that wait for a worker."""

    def tried_again() -> Mapping[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for model, (made, refused) in retries.counts().items():
            found[model, "made"], found[model, "refused"] = made, refused
        return found

    def classes() -> Iterator[tuple[str, Priority, ClassCounts]]:
        for model, line in placer.line_counts().items():
            for rank, counts in line.items():
                yield model, rank, counts

    def ended() -> Mapping[tuple[str, ...], float]:
        return {
            (model, rank, outcome): getattr(counts, outcome)
            for model, rank, counts in classes()
            for outcome in ("served", "refused", "expired", "left")
        }

    meters.watch(resilience.RETRIES, tried_again)
    meters.watch(
        resilience.QUEUE_WAITING,
        lambda: {(model, rank): counts.waiting for model, rank, counts in classes()},
    )
    meters.watch(resilience.QUEUE_LEFT, ended)
    meters.watch(
        resilience.QUEUE_SECONDS,
        lambda: {(model, rank): counts.waited_s for model, rank, counts in classes()},
    )


def watch_journal(meters: Meters, journal: Journal) -> None:
    """Register the metrics of the journey log's size."""
    meters.watch(declared.JOURNEYS, lambda: {(): len(journal)})
    meters.watch(declared.JOURNEYS_BYTES, lambda: {(): journal.kept_bytes})
