"""One node in one process: built, run until told to stop, taken down in order.

    logs → fleet → mesh → HTTP server → engines of the demo → (signal) → drain → goodbye → stop

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
from typing import Any, Final

from prometheus_client import CollectorRegistry

from smg_node import __version__
from smg_node.cluster.build import build_cluster
from smg_node.cluster.farewell import Farewell
from smg_node.config.plain import Settings
from smg_node.config.worker_url import parse_worker_url
from smg_node.control import FleetDesk, build_fleet
from smg_node.core.ids import IdSource
from smg_node.data import Base, build_http_parts, engine_opener, model_parts, watch_fleet
from smg_node.demo import demo_engines, say_demo
from smg_node.fleet.networks import Networks
from smg_node.http.app import Server
from smg_node.memory import settle
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


async def serve(settings: Settings) -> int:
    """Run a node until a signal, an operator or a newer process of its name ends it; return the exit code.

    OSError if a port is taken, SmgError if something it was told to start does not start.
    """
    async with AsyncExitStack() as stack:
        base = await _build_base(settings, stack)
        networks = Networks(settings.workers.allowed_networks)
        fleet = build_fleet(
            settings,
            open_engine=engine_opener(settings, networks, base.meters),
            parts=model_parts(settings, base),
            clock=base.clock,
            rng=base.rng,
        )
        farewell = Farewell()
        cluster = build_cluster(
            settings,
            farewell,
            version=__version__,
            clock=base.clock,
            rng=base.rng,
            meters=base.meters,
        )
        desk = FleetDesk(
            fleet,
            networks,
            workers_ready_min=settings.readiness.min_workers,
            draining=lambda: farewell.draining,
            doubts=cluster.doubts,
        )
        watch_fleet(base.meters, fleet)
        server = Server(build_http_parts(settings, base, fleet, desk, cluster.desk))
        farewell.server = server
        stack.push_async_callback(cluster.stop)
        await cluster.start()
        stack.push_async_callback(server.stop)
        await server.start()
        cluster.publish(server.address, server.metrics_address)
        urls = list(settings.workers.urls)
        if settings.demo:
            urls += await stack.enter_async_context(demo_engines())
        for url in urls:
            said = parse_worker_url(url)
            fleet.add(said, said.labels)
        lag = LoopLag(base.meters, base.clock, busy=fleet.has_workers)
        await stack.enter_async_context(
            _running({"fleet": fleet.run, "loop lag": lag.run, "mesh": cluster.run})
        )
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
    access = AccessLog(sink if telemetry.access_log else None, clock, readable=readable)
    return Base(
        clock=clock,
        rng=rng,
        ids=IdSource(clock, rng),
        meters=meters,
        tracer=tracer,
        access=access,
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
