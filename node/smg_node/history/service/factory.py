"""Factory of history's parts from settings: resilient store, runs, orphan recovery, quotas."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock, Rng
from smg_node.history.peers.peer_interface import Peers
from smg_node.history.ports import HistoryOptions, Keeper
from smg_node.history.runs.orphan_finalizer import OrphanFinalizer
from smg_node.history.runs.orphan_recovery import OrphanRecovery
from smg_node.history.runs.predecessors import Predecessors
from smg_node.history.runs.run_registry import RegisteredRuns
from smg_node.history.service.resumed_streams import ResumedStreams
from smg_node.history.spool.spool import Spool, SpoolLimits
from smg_node.history.spool.spool_format import SALT_BYTES
from smg_node.history.store.open_store import open_history
from smg_node.history.store.resilient_store import ResilientStore
from smg_node.history.store.retention_sweeper import Sweeper
from smg_node.history.store.store_health import StoreHealth
from smg_node.history.turns.quotas import Quotas
from smg_node.telemetry.metrics.declared import background_runs as run_metrics
from smg_node.telemetry.metrics.declared import store as declared
from smg_node.telemetry.metrics.meters import Meters
from smg_node.telemetry.metrics.metric import Metric
from smg_storage.records import PoolFigures

_MARGIN_S: Final = 1.0
"""Drivers are loaded before anything is connected to."""


def build_resilient_store(
    settings: Settings,
    *,
    clock: Clock,
    rng: Rng,
    meters: Meters,
    living: Callable[[], Sequence[str]],
    options: HistoryOptions,
) -> ResilientStore:
    """Return the resilient store, with spool and sweeper; it is opened when it runs."""
    storage = settings.storage

    def now_us() -> int:
        return clock.now_ms() * 1_000

    health = StoreHealth(
        now_s=clock.monotonic_s,
        rng=rng,
        slow_s=storage.slow_s,
        changed=lambda: keeping.store_changed(),
    )
    spool = Spool(
        settings.data_dir / "spool" / settings.name,
        # In the order in which processes begin, so that what they left is written in that order.
        f"{clock.now_ms():013d}-{rng.getrandbits(32):08x}",
        limits=SpoolLimits(storage.spool.turns_max, storage.spool.max_bytes),
        now_us=now_us,
        salt=lambda: rng.getrandbits(8 * SALT_BYTES).to_bytes(SALT_BYTES, "big"),
    )
    keeping = ResilientStore(
        lambda: open_history(settings, now_us),
        kind=storage.kind,
        health=health,
        spool=spool,
        strict=storage.durability == "strict",
        now_s=clock.monotonic_s,
        observe=meters.store_operation,
        wait_s=storage.timeout_s + storage.pool.connect_s + _MARGIN_S,
    )
    sweeper = Sweeper(
        keeping,
        settings.name,
        living=living,
        now_us=now_us,
        now_s=clock.monotonic_s,
        every_s=lambda: options.sweep_s,
    )
    keeping.also(sweeper.run)
    _watch(meters, health, spool, sweeper)
    _watch_pool(meters, keeping)
    return keeping


def build_runs(
    keeper: Keeper,
    options: HistoryOptions,
    *,
    owner: str,
    clock: Clock,
    rng: Rng,
    meters: Meters,
) -> RegisteredRuns:
    """Return the registry of background runs, with its metrics."""
    runs = RegisteredRuns(keeper, options, owner=owner, clock=clock, rng=rng)
    meters.watch(run_metrics.RUNS, lambda: {(): runs.count})
    meters.watch(run_metrics.RUNS_BEGUN, lambda: _by_word(runs.begun))
    meters.watch(run_metrics.RUNS_ENDED, lambda: _by_word(runs.ended))
    meters.watch(run_metrics.RUN_LOG_LAG_SECONDS, lambda: {(): runs.lag_s()})
    meters.watch(run_metrics.RUN_LOG_APPENDS, lambda: {(): runs.appends})
    meters.watch(run_metrics.RUN_LOG_WAITING_BYTES, lambda: {(): runs.held_bytes})
    return runs


def build_resumed_streams(owner: str, *, peers: Peers, meters: Meters) -> ResumedStreams:
    """Return the counts of streams that clients go on with, with their metric."""
    resumed = ResumedStreams(owner, peers.known)
    meters.watch(run_metrics.STREAMS_RESUMED, resumed.readings)
    return resumed


def build_adopter(
    keeper: Keeper,
    options: HistoryOptions,
    runs: RegisteredRuns,
    lives: Predecessors,
    *,
    peers: Peers,
    living: Callable[[], Sequence[str]],
    clock: Clock,
    meters: Meters,
) -> OrphanRecovery:
    """Return the recovery of orphaned runs, with its metrics."""

    def now_us() -> int:
        return clock.now_ms() * 1_000

    adopter = OrphanRecovery(
        keeper.store,
        runs,
        OrphanFinalizer(keeper.store, options, now_us=now_us),
        lives,
        peers=peers,
        living=living,
        now_us=now_us,
        now_s=clock.monotonic_s,
    )
    meters.watch(run_metrics.RUNS_ADOPTED, lambda: _by_word(adopter.adopted))
    return adopter


def _by_word(counts: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(word,): count for word, count in counts.items()}


def _watch(meters: Meters, health: StoreHealth, spool: Spool, sweeper: Sweeper) -> None:
    """Register the metrics of the store's health."""
    meters.watch(declared.STORE_UP, lambda: {(): not health.away})
    meters.watch(declared.STORE_SPOOLED, lambda: {(): spool.spooled})
    meters.watch(declared.STORE_SPOOL_TURNS, lambda: {(): spool.turns})
    meters.watch(declared.STORE_SPOOL_BYTES, lambda: {(): spool.bytes})
    meters.watch(declared.STORE_SPOOL_OLDEST_SECONDS, lambda: {(): spool.oldest_s()})
    meters.watch(declared.STORE_SPOOL_REFUSED, lambda: {(): spool.refused})
    meters.watch(declared.STORE_DEAD_TURNS, lambda: {(): spool.dead})
    meters.watch(declared.STORE_PURGED, lambda: {(): sweeper.purged})
    meters.watch(declared.STORE_ROWS, lambda: _rows(sweeper))


def _watch_pool(meters: Meters, keeping: ResilientStore) -> None:
    """Register the metrics of the store's connection pool; a store without one has none."""
    read: dict[Metric, Callable[[PoolFigures], float]] = {
        declared.STORE_POOL_SIZE: lambda pool: pool.size,
        declared.STORE_POOL_IN_USE: lambda pool: pool.in_use,
        declared.STORE_POOL_WAITING: lambda pool: pool.waiting,
        declared.STORE_POOL_WAITS: lambda pool: pool.waits,
        declared.STORE_POOL_WAIT_SECONDS: lambda pool: pool.waited_s,
    }
    for metric, figure in read.items():
        meters.watch(metric, partial(_of_pool, keeping, figure))


def _of_pool(
    keeping: ResilientStore, figure: Callable[[PoolFigures], float]
) -> dict[tuple[str, ...], float]:
    pool = keeping.pool()
    return {} if pool is None else {(): figure(pool)}


def build_quotas(
    keeper: Keeper, options: HistoryOptions, *, clock: Clock, meters: Meters
) -> Quotas:
    """Return the storage quotas of tenants, with their metrics."""
    quotas = Quotas(keeper, now_s=clock.monotonic_s, options=options)
    meters.watch(declared.STORE_QUOTA_REFUSED, lambda: {(): quotas.refused})
    return quotas


def _rows(sweeper: Sweeper) -> dict[tuple[str, ...], float]:
    seen = sweeper.figures
    rows = {
        "conversations": seen.conversations,
        "items": seen.items,
        "responses": seen.responses,
    }
    return {(table,): count for table, count in rows.items() if count >= 0}
