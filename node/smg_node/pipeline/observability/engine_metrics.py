"""Engine metrics: gauges of the engines' own load reports, of subscriptions and of prefix caches."""

from collections.abc import Callable, Iterable, Mapping

from smg_node.engines.load import Load
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.telemetry.metrics.declared import kv_cache as declared
from smg_node.telemetry.metrics.meters import Meters, Reading


def watch_listening(meters: Meters, fleet: Fleet, now_s: Callable[[], float]) -> None:
    """Register the metrics of the fleet's engine subscriptions; `now_s` is the monotonic clock."""
    listening = fleet.listening

    def silence() -> Mapping[tuple[str, ...], float]:
        followed = [worker for worker in fleet.workers() if worker.following]
        return {(worker.url.endpoint,): now_s() - worker.heard_s for worker in followed}

    def age() -> Mapping[tuple[str, ...], float]:
        return {
            (worker.url.endpoint,): now_s() - min(one.at_s for one in worker.sampled.values())
            for worker in _heard(fleet)
        }

    def of_workers(read: Callable[[Worker], float]) -> Reading:
        return lambda: {(worker.url.endpoint,): read(worker) for worker in fleet.workers()}

    meters.watch(declared.KV_BATCHES, lambda: {(): listening.batches})
    meters.watch(
        declared.KV_SUBSCRIPTIONS_ENDED,
        lambda: {(reason,): count for reason, count in listening.ended.items()},
    )
    meters.watch(declared.KV_STUMBLES, lambda: {(): listening.stumbles})
    meters.watch(declared.KV_SILENCE_SECONDS, silence)
    meters.watch(declared.ENGINE_LOAD_AGE_SECONDS, age)
    meters.watch(declared.ENGINE_RUNNING, _of_loads(fleet, lambda load: load.running, sum))
    meters.watch(declared.ENGINE_WAITING, _of_loads(fleet, lambda load: load.waiting, sum))
    meters.watch(declared.ENGINE_KV_USAGE, _of_loads(fleet, lambda load: load.kv_usage, max))
    meters.watch(
        declared.ENGINE_TOKENS_PER_SECOND, _of_loads(fleet, lambda load: load.tokens_per_s, sum)
    )
    meters.watch(
        declared.WORKER_WAIT_SECONDS, of_workers(lambda worker: worker.load.weighed().wait_s)
    )
    meters.watch(declared.WORKER_PREFILL_RATE, of_workers(lambda worker: worker.load.prefill_rate))
    meters.watch(declared.WORKER_STUCK, of_workers(lambda worker: float(worker.load.stuck)))


def watch_prefixes(meters: Meters, prefixes: Prefixes) -> None:
    """Register the metrics of the prefix caches."""

    def unplaced() -> Mapping[tuple[str, ...], float]:
        counts = prefixes.counts()
        return {
            (name.removesuffix("s"),): counts[name] for name in ("orphans", "refused", "confused")
        }

    index = prefixes.index
    meters.watch(declared.KV_RESYNCS, lambda: {(): prefixes.counts()["resyncs"]})
    meters.watch(declared.KV_BLOCKS_UNPLACED, unplaced)
    meters.watch(declared.KV_INDEX_BLOCKS, lambda: {(): index.figures().entries})
    meters.watch(declared.KV_INDEX_EVICTED, lambda: {(): index.figures().evicted})


def _heard(fleet: Fleet) -> list[Worker]:
    return [worker for worker in fleet.workers() if worker.sampled]


def _of_loads(
    fleet: Fleet,
    read: Callable[[Load], float | None],
    together: Callable[[Iterable[float]], float],
) -> Reading:
    """Return a reading of the summed load of each engine's ranks; nothing where none reports it."""

    def reading() -> Mapping[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for worker in _heard(fleet):
            said = [read(one.load) for one in worker.sampled.values()]
            known = [value for value in said if value is not None]
            if known:
                found[(worker.url.endpoint,)] = together(known)
        return found

    return reading
