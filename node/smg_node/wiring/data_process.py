"""Data process of a node: built, run until control process or supervisor ends it, taken down.

    link → snapshot → fleet → HTTP server → (ordered to drain) → drain → last reports → end

It is a node without what a node has once: no mesh, no documents, no history, no workers to probe.
What it needs of them it has from its control process (`processes.replication.node_copy`), and what
it does not answer itself is passed on to that. It listens only when the workers that members say
are up can be called from here: a process that takes the place of another one must not turn away
what the others would serve.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import msgspec

from smg_node.admission.admission_settings import follow_prices
from smg_node.admission.usage.usage_book import UsageBook
from smg_node.cluster.approvals.lazy_approvals import TOPIC as APPROVALS
from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.cluster.membership.cluster_interface import ReadinessReasons
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.cluster.service_factory import SharedServices, build_keys, build_live
from smg_node.cluster.usage.usage_factory import UsageParts
from smg_node.cluster.workers.sticky_sessions import Sessions
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.config.frozen_settings import Settings, with_values
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.vocabularies.shared_vocabularies import SharedVocabularies
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.http.app import Server
from smg_node.http.forwarding.control_proxy import Forwarding
from smg_node.http.http_parts import HttpParts
from smg_node.http.route_table import public_routes
from smg_node.pipeline.observability.engine_metrics import watch_listening, watch_prefixes
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.process_memory import keep
from smg_node.processes.control_only import ABSENT
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.limit_leases.lease_client_loop import LeasedRights
from smg_node.processes.limit_leases.lease_messages import ASK, WORD
from smg_node.processes.process_role import ALONE, LEAVING, SHARE, UP, YIELD, Role
from smg_node.processes.replication.model_load_results import tell_findings
from smg_node.processes.replication.node_copy import NodeCopy, why_not_ready
from smg_node.processes.replication.state_messages import DRAIN, REPLACED, SERVING, Serving, write
from smg_node.processes.replication.wanted_keys import wanted_keys
from smg_node.processes.reports.journey_query import FIND, journeys_reply
from smg_node.processes.reports.metric_series import LAST, SCRAPE
from smg_node.processes.reports.metrics_scrape import scraped
from smg_node.processes.reports.open_work_query import OPEN_WORK, open_work_reply
from smg_node.processes.reports.usage_messages import USED
from smg_node.processes.reports.usage_sender import UsageSender
from smg_node.processes.template_process import noted_of
from smg_node.telemetry.metrics.loop_lag import LoopLag
from smg_node.wiring.base import Base, build_base, running
from smg_node.wiring.fleet_parts import FleetService, build_fleet, build_prefixes
from smg_node.wiring.mcp_parts import tool_servers
from smg_node.wiring.provider_parts import build_providers
from smg_node.wiring.serving_parts import (
    build_admission,
    build_http_parts,
    engine_opener,
    model_parts,
)

PULSE_S: Final = 0.05
"""Processes of one machine see what is open in the others this soon, so that they do not all choose the same worker."""
WORKERS_PATIENCE_S: Final = 5.0
"""So long the workers that are up may take to be ready here before this process listens without them."""
REPLACED_PATIENCE_S: Final = 30.0
"""The same, where it takes the place of one that died and others serve meanwhile: who came here would be turned away for nothing."""
HANDSHAKES_S: Final = 0.5
"""So long connections that are being made may take before the socket that they are made with is closed."""
_LOOK_S: Final = 0.02

_log = logging.getLogger("smg_node")


@dataclass(frozen=True, slots=True)
class _Process:
    """The parts of a data process, as far as its start and end are concerned."""

    base: Base
    fleet: Fleet
    providers: ProviderFleet
    tool_servers: LazyToolServers
    registry: ClusterRegistry
    desks: SharedServices
    rights: LeasedRights
    sender: UsageSender
    server: Server
    shared: SharedVocabularies | None


async def serve_clients(
    settings: Settings, role: Role, *, stopping: Callable[[int], None] = lambda code: None
) -> int:
    """Serve as a data process until ordered to leave; return the exit code. `stopping` is told it when only the end is left."""
    # Every process has its own calls to choose workers for, so each follows what engines have cached.
    settings = with_values(settings, {("kv", "subscribers"): "all"})
    async with AsyncExitStack() as stack:
        base = await build_base(settings, stack)
        farewell = Shutdown()
        uplink = Uplink(role.place.bus, role.name)
        copy = NodeCopy(settings.name, uplink, base.clock)
        _listen(role, uplink, farewell)
        process = _build(settings, role, base, uplink, copy, farewell)
        await stack.enter_async_context(running({"uplink": uplink.run}))
        await _first(copy.arrived, farewell.wanted)
        process.desks.live.refresh()
        base.issuers.refresh()
        stack.callback(process.rights.close)
        stack.push_async_callback(process.server.stop)
        await stack.enter_async_context(running(_loops(process)))
        await _workers_ready(process, copy, farewell, patience_s(role))
        if not farewell.wanted.is_set():
            await process.server.start()
            _announce(role, uplink, process.server, settings.http.scheme)
        await farewell.wanted.wait()
        # A process that ends by itself from now on is not replaced.
        role.orders.say(LEAVING)
        await process.server.drain()
        process.sender.send()
        uplink.tell(LAST, scraped(base.meters))
        if process.shared is not None:
            # The interpreter waits for a thread that waits for a template.
            process.shared.replace()
        stopping(farewell.code)
    return farewell.code


def _build(
    settings: Settings, role: Role, base: Base, uplink: Uplink, copy: NodeCopy, farewell: Shutdown
) -> _Process:
    """Build everything; nothing is linked yet."""
    clock = base.clock
    networks = Networks(settings.workers.allowed_networks)
    providers = build_providers(settings, base, copy)
    servers = tool_servers(settings, base, copy)
    shared = _build_shared(settings, role, uplink, farewell, lambda: _serves(fleet, providers))
    fleet = build_fleet(
        settings,
        open_engine=engine_opener(settings, networks, base.meters, providers),
        parts=model_parts(settings, base, shared),
        clock=clock,
        rng=base.rng,
    )
    prefixes = build_prefixes(settings, fleet)
    registry = ClusterRegistry(copy, fleet, monotonic_s=clock.monotonic_s, pulse_s=PULSE_S)
    desk = FleetService(
        fleet,
        networks,
        registry=registry,
        sessions=Sessions(registry.sticky, clock.now_ms),
        clock=clock,
        workers_ready_min=settings.readiness.min_workers,
        draining=lambda: farewell.draining,
        doubts=lambda: ReadinessReasons(why_not_ready(copy), copy.node.degraded),
    )
    desks = _build_desks(settings, base, copy, uplink)
    rights = _build_rights(base, uplink, copy)
    usage, sender = _build_usage(base, uplink, desks)
    watch_listening(base.meters, fleet, clock.monotonic_s)
    watch_prefixes(base.meters, prefixes)
    journal = Journal(settings.name)
    parts = build_http_parts(
        settings,
        base,
        fleet,
        desk,
        ABSENT,
        desks,
        UsageParts(usage, ABSENT, ABSENT),
        sticky=registry.sticky,
        vault=copy.carried,
        caches=copy.prompt_caches,
        prefixes=prefixes,
        history=None,
        admission=build_admission(settings, base, desks.live, copy.limits, rights),
        journal=journal,
        tool_servers=servers,
    )
    forwarding = _forwarding(parts, role, uplink)
    server = farewell.server = Server(parts, forwarding)
    server.wait_for(forwarding)
    copy.watch_node(lambda node: server.set_aside(on=node.aside))
    _answer(uplink, base, journal, server)
    tell_findings(uplink, fleet.models)
    return _Process(
        base, fleet, providers, servers, registry, desks, rights, sender, server, shared
    )


def _forwarding(parts: HttpParts, role: Role, uplink: Uplink) -> Forwarding:
    """Let this process listen where clients reach the node, and return what passes on to the control process."""
    options = replace(parts.options, metrics_listen="", admin_listen="", reuse_port=True)
    parts.options = replace(options, listen=str(role.place.address))
    routes = public_routes(apart=options.admin_apart)
    return Forwarding(role.place.control, lambda: uplink.linked, routes)


def _build_desks(settings: Settings, base: Base, copy: NodeCopy, uplink: Uplink) -> SharedServices:
    """Return the services that answer here; the rest is asked of the control process."""
    issuers, clock = base.issuers, base.clock
    issuers.follow(copy, lambda spawn: wanted_keys(uplink, issuers.held, clock, spawn))
    return SharedServices(
        live=build_live(settings, copy),
        settings=ABSENT,
        keys=build_keys(settings, copy, base.clock.now_ms),
        limits=ABSENT,
        audit=ABSENT,
        state=ABSENT,
    )


def _build_rights(base: Base, uplink: Uplink, copy: NodeCopy) -> LeasedRights:
    """Return what this process may spend; it is lent by the control process."""
    rights = LeasedRights(copy.limits, clock=base.clock)
    uplink.on(WORD, rights.hear)
    uplink.opened(lambda: rights.link(lambda open_work_reply: uplink.tell(ASK, open_work_reply)))
    uplink.closed(rights.cut)
    return rights


def _build_usage(
    base: Base, uplink: Uplink, desks: SharedServices
) -> tuple[UsageBook, UsageSender]:
    """Return the usage book, and what carries it to the control process."""
    life = f"{base.clock.now_ms():x}-{base.rng.getrandbits(32):08x}"
    follow_prices(base.prices, desks.live)
    usage = UsageBook(base.prices.now, now_ms=base.clock.now_ms, life=life)
    base.prices.watch(usage.retune)
    sender = UsageSender(usage)
    uplink.opened(lambda: sender.link(lambda lines: uplink.tell(USED, lines)))
    uplink.closed(sender.cut)
    return usage, sender


def _answer(uplink: Uplink, base: Base, journal: Journal, server: Server) -> None:
    """Answer the control process's questions about what only this process knows."""

    async def scrape(question: bytes) -> bytes:
        return scraped(base.meters, question)

    async def find(question: bytes) -> bytes:
        return journeys_reply(journal, question)

    async def work(_question: bytes) -> bytes:
        # What it passed on is open at the control process, which counts it.
        return open_work_reply(msgspec.structs.replace(server.work(), background=0))

    async def approvals(question: bytes) -> bytes:
        return base.approvals.reply(question)

    uplink.answer(APPROVALS, approvals)
    uplink.answer(SCRAPE, scrape)
    uplink.answer(FIND, find)
    uplink.answer(OPEN_WORK, work)


def _build_shared(
    settings: Settings,
    role: Role,
    uplink: Uplink,
    farewell: Shutdown,
    serves: Callable[[], bool],
) -> SharedVocabularies | None:
    """Return what this process has of its template, if it may have one; it leaves when another one has its place."""
    if settings.processes < 2:
        return None
    loop, orders = asyncio.get_running_loop(), role.orders

    def serves_nothing() -> bool:
        server = farewell.server
        return not serves() or server is None or not server.listening

    def ask() -> None:
        loop.call_soon_threadsafe(orders.say, SHARE)

    def replaced() -> None:
        shared.replace()
        uplink.tell(REPLACED, b"")
        why = "another process has this one's place, and shares its vocabularies"
        if farewell.server is None or not farewell.server.listening:
            farewell.leave(why)
            return
        farewell.server.leave_to_others()
        loop.call_later(HANDSHAKES_S, farewell.leave, why)

    shared = SharedVocabularies(
        role.read,
        noted_of(settings),
        ask=ask,
        serves_nothing=serves_nothing,
    )
    orders.on(ALONE, shared.alone)
    orders.on(YIELD, replaced)
    return shared


def _serves(fleet: Fleet, providers: ProviderFleet) -> bool:
    """Return whether there is a model here that requests can be for."""
    return bool(fleet.models.all() or fleet.models.all_relayed() or providers.targets)


def _listen(role: Role, uplink: Uplink, farewell: Shutdown) -> None:
    """Leave when the control process says so, or when the supervisor does and there is no control
    process.
    """

    def leave() -> None:
        farewell.signalled(signal.SIGTERM)

    def ordered() -> None:
        # An orphan with a control process is told to leave by that, which is one as well.
        if not (role.orders.orphaned and uplink.linked):
            leave()

    def cut() -> None:
        if role.orders.orphaned and not farewell.wanted.is_set():
            leave()

    role.orders.listen(ordered)
    uplink.on(DRAIN, lambda _nothing: leave())
    uplink.closed(cut)


def _loops(process: _Process) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
    """Return what runs as long as the process does, by name."""
    base, fleet = process.base, process.fleet
    return {
        "fleet": fleet.run,
        "registry": process.registry.run,
        "providers": partial(process.providers.run, fleet),
        "servers of tools": process.tool_servers.run,
        **process.desks.loops(),
        "issuers": base.issuers.run,
        "loop lag": LoopLag(base.meters, base.clock, busy=fleet.has_workers).run,
    }


async def _first(*events: asyncio.Event) -> None:
    """Return when one of these is set."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(event.wait()) for event in events]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()


def patience_s(role: Role) -> float:
    """Return how long the workers that are up may take to be ready in a process of this role before it listens without them."""
    return REPLACED_PATIENCE_S if role.after and role.living else WORKERS_PATIENCE_S


async def _workers_ready(
    process: _Process, copy: NodeCopy, farewell: Shutdown, within_s: float
) -> None:
    """Return when every worker that members report as up, and every model at a vendor, can be
    called from here, or when that takes too long.
    """
    ends_s = process.base.clock.monotonic_s() + within_s
    while not farewell.wanted.is_set() and process.base.clock.monotonic_s() < ends_s:
        ready = {worker.id for worker in process.fleet.workers() if worker.routable}
        expected = [one.id for one in copy.workers.records() if not one.draining]
        up = [one for one in expected if any(sight.up for sight in copy.verdicts.of(one))]
        if process.providers.applied and ready.issuperset((*up, *process.providers.targets)):
            return
        await asyncio.sleep(_LOOK_S)


def _announce(role: Role, uplink: Uplink, server: Server, scheme: str) -> None:
    """Report that this process serves, now and to every control process that comes."""
    keep()
    role.orders.say(UP)
    address = server.address
    open_work_reply = write(Serving(address.host, address.port, scheme))
    uplink.opened(lambda: uplink.tell(SERVING, open_work_reply))
    uplink.tell(SERVING, open_work_reply)
