"""One node in one process: built, run until told to stop, taken down in order.

    logs → shared state → fleet → mesh → HTTP server → engines of the demo → (signal) → drain → goodbye → stop

What this node shares is built first, because workers, settings and routes live by it, and opened by its part
in the cluster: from then on it may be written to, and what the disk kept of it counts.

The first SIGTERM or SIGINT drains, a second one cuts what is left. An operator's `leave`, or a newer
process of the same name, is as good as a signal. Whatever fails on the way up takes down again what was
up already.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry

from smg_mesh.shared import Shared
from smg_node import __version__
from smg_node.cluster.build import build_cluster, build_shared, build_sharing
from smg_node.cluster.desks import SharedDesks, build_desks, listen
from smg_node.cluster.farewell import Farewell
from smg_node.cluster.hints import PrefixSharing
from smg_node.cluster.history_peers import HistoryPeers
from smg_node.cluster.life import ClusterLife, Doubts
from smg_node.cluster.registry import ClusterRegistry
from smg_node.cluster.sessions import Sessions
from smg_node.cluster.usage_build import UsageParts, build_usage
from smg_node.config.plain import Settings
from smg_node.config.worker_url import parse_worker_url
from smg_node.control import FleetDesk, build_fleet, build_prefixes
from smg_node.core.ids import IdSource
from smg_node.data import Base, build_admission, build_http_parts, engine_opener, model_parts
from smg_node.demo import demo_engines, say_demo
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.networks import Networks
from smg_node.history.door import HistoryDoor
from smg_node.http.app import Server
from smg_node.memory import settle, spare
from smg_node.pipeline.engine_meters import watch_listening, watch_prefixes
from smg_node.telemetry import declared
from smg_node.telemetry.access import AccessLog
from smg_node.telemetry.logs import open_logs
from smg_node.telemetry.loop_lag import LoopLag
from smg_node.telemetry.metrics import Meters
from smg_node.telemetry.tracing import TraceOptions, Tracer
from smg_node.world import SystemClock, system_rng

TRACE_FLUSH_S: Final = 2.0
THREADS: Final = 2
"""For long prompts; the encoders release the interpreter, so two keep a small machine busy."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Node:
    """What a node is made of, as far as its life is concerned."""

    base: Base
    fleet: Fleet
    registry: ClusterRegistry
    desks: SharedDesks
    cluster: ClusterLife
    sharing: PrefixSharing | None
    usage: UsageParts
    history: HistoryDoor
    farewell: Farewell
    server: Server


async def serve(settings: Settings) -> int:
    """Run a node until a signal, an operator or a newer process of its name ends it; return the exit code.

    OSError if a port is taken, SmgError if something it was told to start does not start.
    """
    async with AsyncExitStack() as stack:
        node = _build(settings, await _build_base(settings, stack))
        server, cluster, farewell = node.server, node.cluster, node.farewell
        stack.push_async_callback(cluster.stop)
        await cluster.start()
        node.desks.live.refresh()
        stack.push_async_callback(node.usage.keeper.close)
        stack.push_async_callback(node.history.close)
        stack.push_async_callback(server.stop)
        await server.start()
        cluster.publish(server.address, server.metrics_address)
        urls = list(settings.workers.listed)
        if settings.demo:
            urls += await stack.enter_async_context(demo_engines())
        node.registry.list_static([parse_worker_url(url) for url in urls])
        await stack.enter_async_context(_running(_loops(node)))
        _announce(server)
        if settings.demo:
            say_demo(server.address.port)
        with _signals(farewell.signalled):
            await farewell.wanted.wait()
            cluster.say_leaving()
            await server.drain()
            await cluster.say_goodbye()
        _log.info("drained; stopping")
    return farewell.code


def _build(settings: Settings, base: Base) -> _Node:
    """Build everything; nothing is open yet."""
    clock = base.clock
    shared = build_shared(settings, clock=clock, rng=base.rng, meters=base.meters)
    shared.watch_held(spare)
    networks = Networks(settings.workers.allowed_networks)
    fleet = build_fleet(
        settings,
        open_engine=engine_opener(settings, networks, base.meters),
        parts=model_parts(settings, base),
        clock=clock,
        rng=base.rng,
    )
    prefixes = build_prefixes(settings, fleet, clock=clock)
    registry = ClusterRegistry(
        shared, fleet, monotonic_s=clock.monotonic_s, patience_s=settings.mesh.join_grace_s
    )
    farewell = Farewell()
    cluster = _build_cluster(settings, base, shared, farewell)
    sharing = build_sharing(
        settings, shared, prefixes, fleet, monotonic_s=clock.monotonic_s, meters=base.meters
    )
    history = _build_history(settings, base, shared, HistoryPeers(cluster))
    desk = FleetDesk(
        fleet,
        networks,
        registry=registry,
        sessions=Sessions(registry.sticky, clock.now_ms),
        clock=clock,
        workers_ready_min=settings.readiness.min_workers,
        draining=lambda: farewell.draining,
        doubts=_doubts(cluster, sharing, history),
    )
    desks = build_desks(settings, shared, cluster.mesh, wall_ms=clock.now_ms)
    listen(settings, shared, desks)
    usage = build_usage(settings, desks.live, cluster, clock, base.rng, base.meters)
    watch_listening(base.meters, fleet, clock.monotonic_s)
    watch_prefixes(base.meters, prefixes)
    parts = build_http_parts(
        settings,
        base,
        fleet,
        desk,
        cluster.desk,
        desks,
        usage,
        sticky=registry.sticky,
        mesh=cluster.mesh,
        prefixes=prefixes,
        history=history,
        admission=build_admission(settings, base, desks.live, shared.limits, shared.rights),
    )
    farewell.server = Server(parts)
    farewell.server.wait_for(history)
    return _Node(
        base, fleet, registry, desks, cluster, sharing, usage, history, farewell, farewell.server
    )


def _build_history(
    settings: Settings, base: Base, shared: Shared, peers: HistoryPeers
) -> HistoryDoor:
    """Return the door to what is remembered; nothing is open yet."""
    return HistoryDoor(
        settings,
        clock=base.clock,
        rng=base.rng,
        meters=base.meters,
        living=shared.living,
        vault=shared,
        peers=peers,
    )


def _build_cluster(
    settings: Settings, base: Base, shared: Shared, farewell: Farewell
) -> ClusterLife:
    """Return this node's life among others; it has not begun."""
    return build_cluster(
        settings,
        farewell,
        shared=shared,
        version=__version__,
        clock=base.clock,
        rng=base.rng,
        meters=base.meters,
    )


def _doubts(
    cluster: ClusterLife, sharing: PrefixSharing | None, history: HistoryDoor
) -> Callable[[], Doubts]:
    """Return what says why this node should not be sent work, or what is not as it should be."""
    others = cluster.doubts if sharing is None else sharing.after(cluster.doubts)

    def all_of_them() -> Doubts:
        said = others()
        return Doubts((*said.reasons, *history.reasons()), (*said.degraded, *history.degraded()))

    return all_of_them


def _loops(node: _Node) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
    """Return what runs as long as the node does, by name."""
    sharing = {} if node.sharing is None else {"prefixes": node.sharing.run}
    return {
        "fleet": node.fleet.run,
        "registry": node.registry.run,
        "settings": node.desks.live.run,
        "loop lag": LoopLag(node.base.meters, node.base.clock, busy=node.fleet.has_workers).run,
        "mesh": node.cluster.run,
        "usage": node.usage.keeper.run,
        "history": node.history.run,
        **sharing,
    }


async def _build_base(settings: Settings, stack: AsyncExitStack) -> Base:
    """Build what everything else stands on; `stack` takes it down last."""
    telemetry = settings.telemetry
    logs, sink = open_logs(
        sys.stderr.buffer, line_format=telemetry.log_format, level=telemetry.log_level
    )
    stack.callback(sink.close)
    stack.callback(logs.close)
    clock, rng = SystemClock(), system_rng()
    # A request whose model was not found has none; it must not get a series without a name.
    meters = Meters(CollectorRegistry(), version=__version__, known_model=bool)
    meters.watch(declared.LOG_LINES_DROPPED, lambda: {(): sink.dropped})
    tracer = Tracer(
        TraceOptions(
            ratio=telemetry.trace_ratio,
            endpoint=telemetry.otlp_endpoint,
            node=settings.name,
            version=__version__,
        ),
        rng,
    )
    stack.push_async_callback(tracer.close, TRACE_FLUSH_S)
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="prompts")
    stack.callback(threads.shutdown, wait=False, cancel_futures=True)
    readable = telemetry.log_format == "console" or (
        telemetry.log_format == "auto" and sys.stderr.isatty()
    )
    access = AccessLog(sink, clock, readable=readable, enabled=telemetry.access_log)
    return Base(
        clock=clock,
        rng=rng,
        ids=IdSource(clock, rng),
        meters=meters,
        tracer=tracer,
        access=access,
        logs=logs,
        threads=threads,
    )


@asynccontextmanager
async def _running(
    parts: Mapping[str, Callable[[], Coroutine[Any, Any, None]]],
) -> AsyncIterator[None]:
    """Run the node's own tasks meanwhile, by name; a mistake in one of them ends the node."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(), name=name) for name, run in parts.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@contextmanager
def _signals(take: Callable[[signal.Signals], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, take, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _announce(server: Server) -> None:
    """Say where the node listens; scripts and tests wait for these words."""
    settle()
    if server.metrics_address is not None:
        _log.info("metrics on http://%s", server.metrics_address)
    _log.info("listening on http://%s", server.address)
