"""App: assembles routes and middleware, and the HTTP server with its listeners and its drain.

Routes, middleware and replies (`route_table`, `middleware`, `reply`) are the same whichever server
reads requests: our own (`http1_connection`) or the framework's (`aiohttp_connection`), which is not
loaded unless it is chosen.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from smg_node.config.address import Address
from smg_node.http.http_options import HttpOptions
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.delta_coalescing import DeltaCoalescer
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.middleware.authorization import Authorizing, usual_guard
from smg_node.http.middleware.drain_phases import Drain, DrainTimes, Phase, Step
from smg_node.http.middleware.inflight import DetachedWork, Inflight
from smg_node.http.middleware.middleware import Action, Middleware
from smg_node.http.middleware.readiness_probers import Probers
from smg_node.http.ports.drain import OpenWork
from smg_node.http.route_actions import build_actions
from smg_node.http.route_table import METRICS_ROUTES, Router, operators_routes, public_routes
from smg_node.http.server.connections import ConnectionLimits, Dispatcher, Listener
from smg_node.http.server.http1_connection import DirectConnection
from smg_node.http.server.listen_sockets import UNIX, Listening, bound, leave_to_others, listen
from smg_node.http.sockets.own_door import OwnDoor
from smg_node.telemetry.metrics.declared import node as declared

if TYPE_CHECKING:
    from smg_node.http.server.admin_listening import AdminListening
    from smg_node.http.tls.tls_listening import TlsListening
    from smg_node.http.tls_options import TlsOptions

_FAREWELL_S: Final = 1.0
"""How long a stopping server waits for requests to end, and then for their last bytes to leave."""


class OtherProcesses(Protocol):
    """Interface to other processes of this node that serve some of its requests."""

    def actions(self, actions: Mapping[str, Action]) -> Mapping[str, Action]:
        """Return the action of each name in this process."""
        ...

    def around(self, door: Dispatcher) -> Dispatcher:
        """Return the dispatcher of the public listener."""
        ...


@dataclass(frozen=True, slots=True)
class App:
    """Everything between a parsed request and the node, without any socket."""

    door: Middleware
    metrics_door: Middleware
    drain: Drain
    inflight: Inflight
    probers: Probers
    pulse: KeepaliveTimer
    joining: DeltaCoalescer
    bodies: BodyReader
    operators_door: Middleware | None
    """That of the listener for operators; None without one."""
    own_door: OwnDoor
    """Where sockets ask the node itself."""

    def retune(self, options: HttpOptions) -> None:
        """Apply options that may change while requests are served."""
        self.drain.retune(settle_s=options.settle_s, grace_s=options.grace_s)
        self.pulse.retune(commit_after_s=options.commit_after_s, keepalive_s=options.keepalive_s)
        self.joining.retune(coalesce_ms=options.coalesce_ms)
        self.bodies.retune(max_bytes=options.body_max_bytes, stall_s=options.body_stall_s)


def build_app(parts: HttpParts, elsewhere: OtherProcesses | None = None) -> App:
    """Return the dispatchers of all listeners and the parts they share."""
    options = parts.options
    drain = Drain(settle_s=options.settle_s, grace_s=options.grace_s)
    inflight = Inflight()
    probers = Probers()
    pulse = KeepaliveTimer(commit_after_s=options.commit_after_s, keepalive_s=options.keepalive_s)
    joining = DeltaCoalescer(coalesce_ms=options.coalesce_ms, on_saved=parts.meters.joined_events)
    bodies = BodyReader(max_bytes=options.body_max_bytes, stall_s=options.body_stall_s)
    own_door = OwnDoor()
    actions = build_actions(parts, bodies, drain, pulse, joining, inflight, probers, own_door)
    if elsewhere is not None:
        actions = elsewhere.actions(actions)
    hsts_s = 0 if options.tls is None else options.tls.hsts_s
    routes, guard = public_routes(apart=options.admin_apart), _guard(parts)
    door = Middleware(parts, Router(routes), actions, drain, inflight, guard, hsts_s=hsts_s)
    # A scrape must not hold up the farewell, so it is not counted among the open requests.
    metrics_door = Middleware(
        parts,
        Router(METRICS_ROUTES),
        actions,
        drain,
        Inflight(),
        hsts_s=hsts_s if options.metrics_tls else 0,
    )
    operators_door = None
    if options.admin_listen:
        operators_door = Middleware(
            parts,
            Router(operators_routes()),
            actions,
            drain,
            inflight,
            _socket_guard(guard) if options.admin_listen.startswith(UNIX) else guard,
            hsts_s=hsts_s if options.admin_tls else 0,
        )
    return App(
        *(door, metrics_door, drain, inflight, probers, pulse, joining, bodies),
        operators_door,
        own_door,
    )


def _guard(parts: HttpParts) -> Authorizing:
    usual = usual_guard(parts)
    if not parts.options.trusted_proxies:
        return usual
    from smg_node.http.middleware.proxied_line import ProxiedGuard

    return ProxiedGuard(usual)


def _socket_guard(usual: Authorizing) -> Authorizing:
    from smg_node.http.middleware.socket_guard import SocketGuard

    return SocketGuard(usual)


def _behind_proxies(door: Dispatcher, options: HttpOptions, where: str) -> Dispatcher:
    """Return the dispatcher of a listener at `where`, which believes the proxies that the options name."""
    # By a socket come other processes of this node, which say themselves whom a request is from, and operators.
    if not options.trusted_proxies or where.startswith(UNIX):
        return door
    from smg_node.http.server.proxy_door import ProxyDoor

    return ProxyDoor(door, options.trusted_proxies)


class Server:
    """Server with its listeners: listens, answers, drains and stops.

    `start`, then at the end `drain` (may be skipped) and `stop`. `hurry` makes a running drain cut
    what is left at once.
    """

    def __init__(self, parts: HttpParts, elsewhere: OtherProcesses | None = None) -> None:
        self.parts = parts
        self._options = parts.options
        self._clock = parts.clock
        self._app = build_app(parts, elsewhere)
        door = self._app.door if elsewhere is None else elsewhere.around(self._app.door)
        self._app.own_door.lead_to(door)
        self._door = _behind_proxies(door, self._options, self._options.listen)
        self._changed = asyncio.Event()
        self._hurried = False
        self._listeners: list[Listener] = []
        self._public: Listening | None = None
        self._metrics: Listening | None = None
        self._operators: AdminListening | None = None
        self._meters = parts.meters
        self._tls: TlsListening | None = None
        parts.heard.append(self._retune)
        parts.meters.watch(declared.HTTP_INFLIGHT, lambda: {(): self._app.inflight.count})
        parts.meters.watch(declared.HTTP_CONNECTIONS, self._connections)
        parts.meters.watch(declared.HTTP_SOCKETS, self._app.inflight.sockets)

    @property
    def address(self) -> Address:
        """Address of the public API, with the port that was really bound."""
        assert self._public is not None, "the server has not started"
        return bound(self._public)

    @property
    def listening(self) -> bool:
        """Whether clients can connect, or could."""
        return self._public is not None

    @property
    def metrics_address(self) -> Address | None:
        """Address of the metrics, or None without a port for them."""
        return None if self._metrics is None else bound(self._metrics)

    @property
    def operators_address(self) -> str:
        """Address of the listener for operators, `unix:/path` for a socket; "" without one."""
        return "" if self._operators is None else self._operators.shown

    @property
    def phase(self) -> Phase:
        """Current phase of the drain."""
        return self._app.drain.phase

    @property
    def aside(self) -> bool:
        """Whether an operator took the node out of service."""
        return self._app.drain.aside

    def set_aside(self, *, on: bool) -> None:
        """Refuse new work, or accept it again; the node goes on listening."""
        self._app.drain.set_aside(self._clock.monotonic_s(), on=on)

    def work(self) -> OpenWork:
        """Return the open requests of this process, and the recent readiness probers."""
        now_s, app = self._clock.monotonic_s(), self._app
        taking = not app.drain.refuses_work(now_s)
        times = app.drain.times(now_s)
        return msgspec.structs.replace(
            app.inflight.work(),
            taking=taking,
            settle_left_s=times.settle_left_s,
            cut_left_s=times.cut_left_s,
            probers=app.probers.views(now_s),
        )

    def farewell_times(self) -> DrainTimes:
        """Return how long the drain will take, or would."""
        return self._app.drain.times(self._clock.monotonic_s())

    async def start(self) -> None:
        """Listen on all ports. OSError if one is taken, ValueError for an address that is none,
        INTERNAL where the certificates will not do, or the address for operators.
        """
        options = self._options
        # A process that others pass requests on to is asked over a socket file, where nobody listens in.
        public_tls = not options.listen.startswith(UNIX)
        if options.tls is not None and (
            public_tls or options.metrics_tls or (options.admin_listen and options.admin_tls)
        ):
            self._tls = await self._certificates(options.tls)
        try:
            if options.metrics_listen:
                tls = self._tls if options.metrics_tls else None
                self._metrics = await self._listen(
                    options.metrics_listen, self._app.metrics_door, tls
                )
            if self._app.operators_door is not None:
                await self._listen_for_operators(self._app.operators_door)
            self._public = await self._listen(
                options.listen, self._door, self._tls if public_tls else None
            )
        except BaseException:
            await self.stop()
            raise

    async def drain(self) -> None:
        """Drain: return when every request has ended, by itself or by being cut."""
        drain, inflight = self._app.drain, self._app.inflight
        # From now on only: nobody else waits for requests to end.
        inflight.tell(self._changed.set)
        drain.begin(self._clock.monotonic_s())
        while True:
            now_s = self._clock.monotonic_s()
            for step in drain.advance(now_s, inflight.left, hurried=self._hurried):
                self._take(step)
            if drain.phase is Phase.OVER:
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(drain.wait_s(self._clock.monotonic_s())):
                    await self._changed.wait()
            except TimeoutError:
                # The phase is over; the next round sees it.
                continue

    def wait_for(self, outliving: DetachedWork) -> None:
        """Make the drain wait for this work too, and cut it with the requests."""
        self._app.inflight.outliving = outliving
        outliving.changed = self._changed.set

    def leave_to_others(self) -> None:
        """Take no new connections, and close the listeners at once when the drain begins: others answer on the same port."""
        self._app.drain.retune(settle_s=0.0, grace_s=self._options.grace_s)
        for one in () if self._public is None else self._public.sockets:
            # The event loop's own objects for sockets set no options.
            with socket.socket(fileno=os.dup(one.fileno())) as raw:
                leave_to_others(raw)

    def hurry(self) -> None:
        """Cut what is left now, in a drain in progress or in the next one."""
        self._hurried = True
        self._changed.set()

    async def stop(self) -> None:
        """Close everything: listeners at once, open requests after a second. Safe to call twice."""
        for server in (self._public, self._metrics, self._operators):
            if server is not None:
                server.close()
        if self._tls is not None:
            await self._tls.close()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.leave()
        for listener in listeners:
            await listener.emptied(_FAREWELL_S)
            listener.cut()
            await listener.emptied(_FAREWELL_S)
            listener.drop()
        self._app.pulse.close()
        self._app.joining.close()

    def _retune(self, options: HttpOptions) -> None:
        """Apply new options; the listening addresses stay as they were."""
        self._app.retune(options)
        for listener in self._listeners:
            listener.retune(_limits(options))

    def _take(self, step: Step) -> None:
        if step is Step.CUT_REQUESTS:
            self._app.inflight.cut()
        elif self._public is not None:
            self._public.close()
            self._app.inflight.dismiss()

    async def _certificates(self, options: "TlsOptions") -> "TlsListening":
        # Not loaded by a node that speaks plain HTTP.
        from smg_node.http.tls.tls_listening import TlsListening

        tls = TlsListening(options, self._meters, self._clock.now_ms)
        await tls.open()
        return tls

    async def _listen(self, where: str, door: Dispatcher, tls: "TlsListening | None") -> Listening:
        listener = _listener(door, self._options)
        self._listeners.append(listener)
        if tls is not None:
            listener.bound_connections(tls.connections_max())
            return tls.listen(where, listener, reuse_port=self._options.reuse_port)
        return await listen(where, listener, reuse_port=self._options.reuse_port)

    async def _listen_for_operators(self, door: Dispatcher) -> None:
        # Not loaded by a node without such a listener.
        from smg_node.http.server.admin_listening import listen_for_operators

        options, tls = self._options, self._tls
        listener = _listener(_behind_proxies(door, options, options.admin_listen), options)
        self._listeners.append(listener)
        shown = tls if options.admin_tls else None
        self._operators = await listen_for_operators(options.admin_listen, listener, shown)

    def _connections(self) -> Mapping[tuple[str, ...], float]:
        return {(): sum(listener.count for listener in self._listeners)}


def _listener(door: Dispatcher, options: HttpOptions) -> Listener:
    limits = _limits(options)
    if options.server == "direct":
        return Listener(door, limits, DirectConnection)
    from smg_node.http.server.aiohttp_connection import framework_listener

    return framework_listener(door, limits)


def _limits(options: HttpOptions) -> ConnectionLimits:
    return ConnectionLimits(
        connections_max=options.connections_max,
        body_max_bytes=options.body_max_bytes,
        header_line_max_bytes=options.header_line_max_bytes,
        header_count_max=options.header_count_max,
        header_read_s=options.header_read_s,
        idle_keepalive_s=options.idle_keepalive_s,
        slow_client_bytes=options.slow_client_bytes,
        slow_client_s=options.slow_client_s,
    )
