"""Base of every process of a node: built first, taken down last; and the task group it runs in."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from prometheus_client import CollectorRegistry

from smg_node import __version__
from smg_node.cluster.approvals.lazy_approvals import WAITING_MAX, LazyApprovals
from smg_node.cluster.issuers.lazy_issuers import LazyIssuers
from smg_node.config.frozen_settings import Settings
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock, Rng
from smg_node.core.prices.price_list import PriceBook
from smg_node.http.ports.drain import OpenWork
from smg_node.pipeline.relay.relay_context import ShadowPost
from smg_node.process_threads import LeavableThreads, threads_max
from smg_node.system_clock import SystemClock, system_rng
from smg_node.telemetry.logs.access_log import AccessLog
from smg_node.telemetry.logs.logs import Logs, open_logs
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.gc_pauses import gc_pauses
from smg_node.telemetry.metrics.meters import Meters
from smg_node.telemetry.traces.tracer import TraceOptions, Tracer
from smg_node.wiring.state_cache import LazyStateCache

if TYPE_CHECKING:
    from smg_node.cluster.membership.shutdown import Shutdown
    from smg_node.processes.control_process import Controlling

OPEN_WORK_LOG_S: Final = 10.0
"""So often a node that leaves says what it waits for."""
TRACE_FLUSH_S: Final = 2.0
THREADS: Final = 2
"""For long prompts; the encoders release the interpreter, so two keep a small machine busy."""


def threads_of(processes: int) -> int:
    """Return how many threads a process has for long prompts, of a node of so many data processes.

    The fast encoder keeps tens of megabytes of words for each thread, so several processes have one each.
    """
    return THREADS if processes < 2 else 1


_log = logging.getLogger("smg_node")


@dataclass(frozen=True, slots=True)
class Base:
    """The parts that everything else depends on; one of each per process."""

    clock: Clock
    rng: Rng
    ids: IdSource
    meters: Meters
    tracer: Tracer
    access: AccessLog
    logs: Logs
    threads: Executor
    prices: PriceBook
    post: ShadowPost
    state_cache: LazyStateCache
    approvals: LazyApprovals
    issuers: LazyIssuers
    ending: AsyncExitStack
    """Takes down what is built later, before everything that was built earlier."""


async def build_base(settings: Settings, stack: AsyncExitStack) -> Base:
    """Build the parts that everything else depends on; `stack` takes them down last."""
    asyncio.get_running_loop().set_default_executor(LeavableThreads(threads_max()))
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
    stack.enter_context(gc_pauses(meters, clock.monotonic_s))
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
    threads = ThreadPoolExecutor(threads_of(settings.processes), thread_name_prefix="prompts")
    stack.callback(threads.shutdown, wait=False, cancel_futures=True)
    state_cache = LazyStateCache(settings, clock, meters)
    stack.push_async_callback(state_cache.close)
    ids = IdSource(clock, rng)
    waiting_max = max(1, WAITING_MAX // max(1, settings.processes))
    approvals = LazyApprovals(settings.name, ids, clock, meters, waiting_max=waiting_max)
    readable = telemetry.log_format == "console" or (
        telemetry.log_format == "auto" and sys.stderr.isatty()
    )
    access = AccessLog(sink, readable=readable, enabled=telemetry.access_log)
    return Base(
        clock=clock,
        rng=rng,
        ids=ids,
        meters=meters,
        tracer=tracer,
        access=access,
        logs=logs,
        threads=threads,
        prices=PriceBook(),
        post=ShadowPost(),
        state_cache=state_cache,
        approvals=approvals,
        issuers=LazyIssuers(settings.name, settings.auth, clock, rng, meters),
        ending=stack,
    )


@asynccontextmanager
async def running(
    parts: Mapping[str, Callable[[], Coroutine[Any, Any, None]]],
) -> AsyncIterator[None]:
    """Run the node's own tasks meanwhile, by name; an unexpected error in one of them ends the
    node.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(), name=name) for name, run in parts.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@contextmanager
def signals(take: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Hand the signals that end a process to `take` meanwhile."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, take, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def log_open_work(farewell: "Shutdown", control: "Controlling | None") -> None:
    """Log what the drain still waits for, again and again, for the waiting operator."""
    while True:
        await asyncio.sleep(OPEN_WORK_LOG_S)
        work = await open_work(farewell, control)
        _log.info(
            "draining: %d streams, %d requests and %d background responses are open; cut off in %.0f s",
            *(work.streams, work.requests, work.background),
            work.cut_left_s or 0.0,
        )


async def open_work(farewell: "Shutdown", control: "Controlling | None") -> OpenWork:
    """Return what is open in all processes of this node."""
    own = OpenWork() if farewell.server is None else farewell.server.work()
    if control is None:
        return own
    # Clients reach this process only through the others: how far those are is what counts.
    passed_on = msgspec.structs.replace(own, taking=False, settle_left_s=0.0, cut_left_s=None)
    return await control.open_work(passed_on)
