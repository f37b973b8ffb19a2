"""Node process: one node, or the control process of several; built, run until stopped, taken down.

    logs → shared state → fleet → mesh → HTTP server → engines of the demo → (signal) → drain → leave → stop

What this node shares is built first, because workers, settings and routes depend on it, and opened
by its part in the cluster: from then on it may be written to, and what the disk kept of it counts.

The first SIGTERM or SIGINT drains, a second one cuts what is left. An operator's `leave`, or a newer process
of the same name, is as good as a signal. Whatever fails on the way up takes down again what was up already.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from smg_mesh.shared import Shared
from smg_node import __version__
from smg_node.cluster.factory import build_cluster, build_shared, build_sharing
from smg_node.cluster.history_peers import HistoryPeers
from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.cluster.membership.cluster_interface import ClusterInterface
from smg_node.cluster.membership.drain_status import Draining
from smg_node.cluster.membership.node_duties import duties_of
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.cluster.prefix_hints.prefix_sharing import PrefixSharing
from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.cluster.reports.cluster_metrics import Numbers, own_numbers
from smg_node.cluster.service_factory import SharedServices, build_services, listen
from smg_node.cluster.usage.usage_factory import UsageParts, build_usage
from smg_node.cluster.workers.sticky_sessions import Sessions
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.config.address import Address
from smg_node.config.frozen_settings import Settings
from smg_node.config.worker_url import parse_worker_url
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.history.service.lazy_history import LazyHistory
from smg_node.http.announcement import announce
from smg_node.http.app import Server
from smg_node.http.http_parts import HttpParts
from smg_node.pipeline.observability.engine_metrics import watch_listening, watch_prefixes
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.process_memory import settle, spare
from smg_node.telemetry.metrics.loop_lag import LoopLag
from smg_node.wiring.base import (
    Base,
    build_base,
    log_open_work,
    open_work,
    running,
    signals,
)
from smg_node.wiring.discovery.live_discovery import LiveDiscovery
from smg_node.wiring.fleet_parts import FleetService, build_fleet, build_prefixes, build_readiness
from smg_node.wiring.mcp_parts import tool_servers
from smg_node.wiring.provider_parts import build_providers, let_define
from smg_node.wiring.serving_parts import (
    build_admission,
    build_http_parts,
    engine_opener,
    model_parts,
)

if TYPE_CHECKING:
    from smg_mesh.mesh import SeedFinder
    from smg_node.processes.control_process import Controlling
    from smg_node.processes.process_role import Role

_log = logging.getLogger("smg_node")


@dataclass(frozen=True, slots=True)
class _Node:
    """The parts of a node, as far as its start and end are concerned."""

    base: Base
    fleet: Fleet
    providers: ProviderFleet
    tool_servers: LazyToolServers
    registry: ClusterRegistry
    discovery: LiveDiscovery
    desks: SharedServices
    cluster: ClusterInterface
    sharing: PrefixSharing | None
    usage: UsageParts
    history: LazyHistory
    farewell: Shutdown
    server: Server
    control: "Controlling | None"


async def serve(
    settings: Settings,
    role: "Role | None" = None,
    *,
    stopping: Callable[[int], None] = lambda code: None,
) -> int:
    """Run a node until a signal, an operator or another process that keeps its name ends it; return the exit code.

    With a `role` it is the control process of a node of several. `stopping` is told the code when only the end is left. OSError if a port is taken, SmgError if
    something it was told to start does not start.
    """
    async with AsyncExitStack() as stack:
        node = _build(settings, await build_base(settings, stack), role)
        server, cluster, farewell, control = node.server, node.cluster, node.farewell, node.control
        stack.push_async_callback(cluster.stop)
        await cluster.start()
        node.desks.live.refresh()
        node.base.issuers.refresh()
        stack.push_async_callback(node.usage.keeper.close)
        stack.push_async_callback(node.history.close)
        stack.push_async_callback(server.stop)
        await server.start()
        address = server.address if control is None else control.address
        cluster.publish(address, server.metrics_address, server.operators_address)
        urls = list(settings.workers.listed)
        if settings.demo:
            from smg_node.wiring.demo_engines import demo_engines

            urls += await stack.enter_async_context(demo_engines())
        node.registry.list_static(map(parse_worker_url, urls), settings.workers.sent_key)
        if control is not None:
            stack.callback(control.bus.close)
            await control.open(lambda: farewell.signalled(signal.SIGTERM))
        await stack.enter_async_context(running(_loops(node)))
        if control is not None:
            await control.serving(settings.processes)
        _announce(settings, server, address)
        with signals(farewell.signalled) if control is None else nullcontext():
            await farewell.wanted.wait()
            cluster.say_leaving()
            await _drain(settings, farewell, server, control)
            await cluster.say_goodbye()
        _log.info("drained; stopping")
        stopping(farewell.code)
    return farewell.code


async def _drain(
    settings: Settings, farewell: Shutdown, server: Server, control: "Controlling | None"
) -> None:
    """Drain and leave, in all processes at a time, and report progress."""
    async with running({"farewell": partial(log_open_work, farewell, control)}):
        if control is None:
            await server.drain()
            return
        within_s = settings.drain.settle_s + settings.drain.grace_s
        await asyncio.gather(server.drain(), control.drained(within_s))


def _build_prefixes(settings: Settings, base: Base, fleet: Fleet) -> Prefixes:
    """Return what engines have cached, as far as it is followed; scrapes read that and what engines say."""
    watch_listening(base.meters, fleet, base.clock.monotonic_s)
    watch_prefixes(base.meters, prefixes := build_prefixes(settings, fleet))
    return prefixes


def _build(settings: Settings, base: Base, role: "Role | None") -> _Node:
    """Build everything; nothing is open yet."""
    shared = build_shared(settings, clock=base.clock, rng=base.rng, meters=base.meters)
    networks = Networks(settings.workers.allowed_networks)
    providers = build_providers(settings, base, shared)
    servers = tool_servers(settings, base, shared)
    fleet = build_fleet(
        settings,
        open_engine=engine_opener(settings, networks, base.meters, providers),
        parts=replace(model_parts(settings, base), at_once=role is None),
        clock=base.clock,
        rng=base.rng,
    )
    prefixes, farewell, clock = _build_prefixes(settings, base, fleet), Shutdown(), base.clock
    control = None if role is None else _build_control(role, base, shared, fleet, providers)
    registry = _build_registry(settings, base, shared, fleet, control)
    cluster = _build_cluster(settings, base, shared, farewell)
    gossiped = (settings, shared, prefixes, fleet)
    sharing = build_sharing(*gossiped, monotonic_s=clock.monotonic_s, meters=base.meters)
    history = _build_history(settings, base, shared, HistoryPeers(cluster))
    doubts = build_readiness(cluster, sharing, history)
    desk = FleetService(
        fleet,
        networks,
        registry=registry,
        sessions=Sessions(registry.sticky, clock.now_ms),
        clock=clock,
        workers_ready_min=settings.readiness.min_workers,
        draining=lambda: farewell.draining,
        doubts=doubts,
    )
    desks = _build_services(settings, base, shared, cluster)
    usage = build_usage(settings, desks.live, cluster, base)
    parts = build_http_parts(
        settings,
        base,
        fleet,
        desk,
        cluster.desk,
        desks,
        usage,
        sticky=registry.sticky,
        vault=shared.carried,
        caches=shared.prompt_caches,
        mesh=cluster.mesh,
        siblings=None if control is None else control.siblings,
        prefixes=prefixes,
        history=history,
        admission=build_admission(settings, base, desks.live, shared.limits, shared.rights),
        tool_servers=servers,
    )
    let_define(parts, base, shared, fleet, providers, servers)
    parts.numbers = _build_numbers(settings, base, desk, cluster, control)
    parts.draining = _build_draining(shared, registry, cluster, farewell, control)
    if control is not None:
        control.join(parts, usage.usage, doubts=doubts, aside=lambda: farewell.aside)
    ends = (usage, history, farewell, _build_server(parts, farewell, control, history), control)
    found = _build_discovery(settings, base, shared, registry, farewell).connect(parts, desks.live)
    return _Node(base, fleet, providers, servers, registry, found, desks, cluster, sharing, *ends)


def _build_discovery(
    settings: Settings, base: Base, shared: Shared, registry: ClusterRegistry, farewell: Shutdown
) -> LiveDiscovery:
    """Return what finds workers; where there is no source, nothing of it is imported."""
    if not settings.discovery.lists_own:
        registry.list_no_file()
    found = LiveDiscovery(settings, base, shared, registry, is_leaving=lambda: farewell.draining)
    registry.tidying.append(found.tidy)
    return found


def _build_services(
    settings: Settings, base: Base, shared: Shared, cluster: ClusterInterface
) -> SharedServices:
    """Return the services between shared state and the HTTP surface."""
    base.issuers.connect(shared, cluster.mesh)
    services = build_services(settings, shared, cluster.mesh, wall_ms=base.clock.now_ms)
    listen(settings, shared, services)
    return services


def _build_server(
    parts: HttpParts, farewell: Shutdown, control: "Controlling | None", history: LazyHistory
) -> Server:
    """Return the HTTP server, which the end of the node drains."""
    server = farewell.server = Server(parts, None if control is None else control.elsewhere)
    server.wait_for(history)
    return server


def _build_numbers(
    settings: Settings,
    base: Base,
    desk: FleetService,
    cluster: ClusterInterface,
    control: "Controlling | None",
) -> Numbers:
    """Return the service of all metrics, of all processes here and of other nodes."""
    return Numbers(
        settings.name,
        __version__,
        own_numbers(base.meters) if control is None else control.numbers,
        cluster.desk.members,
        cluster.mesh,
        health=desk.health,
        now_s=base.clock.monotonic_s,
    )


def _build_draining(
    shared: Shared,
    registry: ClusterRegistry,
    cluster: ClusterInterface,
    farewell: Shutdown,
    control: "Controlling | None",
) -> Draining:
    """Return the service that reports how far draining members are."""
    return Draining(
        shared.name,
        cluster.desk.members,
        cluster.mesh,
        farewell,
        work=lambda: open_work(farewell, control),
        duties=lambda: duties_of(shared.name, shared, registry.outlook, cluster.desk),
    )


def _build_registry(
    settings: Settings, base: Base, shared: Shared, fleet: Fleet, control: "Controlling | None"
) -> ClusterRegistry:
    """Return what binds the workers of the cluster to the fleet; in a node of several, all count what is open."""
    shared.watch_held(spare)
    open_registry = partial(
        ClusterRegistry,
        shared,
        fleet,
        monotonic_s=base.clock.monotonic_s,
        patience_s=settings.mesh.join_grace_s,
    )
    if control is None:
        return open_registry()
    return open_registry(load=control.load, beside=control.load.beside)


def _build_control(
    role: "Role", base: Base, shared: Shared, fleet: Fleet, providers: ProviderFleet
) -> "Controlling":
    # Imported here: a node in one process has no other processes.
    from smg_node.processes.control_process import Controlling
    from smg_node.processes.replication.model_load_results import hear_findings
    from smg_node.processes.replication.wanted_keys import answer_wants

    control = Controlling(role, shared, base.meters, base.clock)
    hear_findings(control.bus, fleet)
    answer_wants(control.bus, base.issuers.want, base.issuers.held)
    providers.rates, base.approvals.siblings = control.rates, control.approvals
    return control


def _build_history(
    settings: Settings, base: Base, shared: Shared, peers: HistoryPeers
) -> LazyHistory:
    """Return the lazy history; nothing is open yet."""
    return LazyHistory(
        settings,
        clock=base.clock,
        rng=base.rng,
        meters=base.meters,
        living=shared.living,
        vault=shared,
        peers=peers,
    )


def _build_cluster(
    settings: Settings, base: Base, shared: Shared, farewell: Shutdown
) -> ClusterInterface:
    """Return this node's part in the cluster; it has not begun."""
    finders: list[SeedFinder] = []
    if settings.peer_pods[0]:
        from smg_node.wiring.discovery.peers import build_peer_finder

        finders.append(build_peer_finder(settings, base.clock))
    return build_cluster(
        settings,
        farewell,
        shared=shared,
        version=__version__,
        clock=base.clock,
        rng=base.rng,
        meters=base.meters,
        finders=finders,
    )


def _loops(node: _Node) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
    """Return what runs as long as the node does, by name."""
    return {
        "fleet": node.fleet.run,
        "registry": node.registry.run,
        "providers": partial(node.providers.run, node.fleet),
        "servers of tools": node.tool_servers.run,
        **node.desks.loops(),
        "issuers": node.base.issuers.run,
        "loop lag": LoopLag(node.base.meters, node.base.clock, busy=node.fleet.has_workers).run,
        "mesh": node.cluster.run,
        "usage": node.usage.keeper.run,
        "history": node.history.run,
        **({} if node.sharing is None else {"prefixes": node.sharing.run}),
        "discovery": node.discovery.run,
        **({} if node.control is None else node.control.loops()),
    }


def _announce(settings: Settings, server: Server, address: Address) -> None:
    """Log where the node listens. A demo then prints what to try."""
    settle()
    announce(settings, server, address)
    if settings.demo:
        from smg_node.wiring.demo_engines import print_demo

        http, operators = settings.http, server.operators_address
        where = f"{http.admin_scheme}://{operators}" if ":/" not in operators else operators
        print_demo(address.port, http.tls.certificate, where if operators else "")
