"""The HTTP server: its parts put together, its listeners, and its farewell.

The framework's server is used below its application layer: routes, middlewares and answers are ours
(`routes.py`, `middleware.py`, `reply.py`), parsing and connections are its own. Four of its defaults
would hurt here and are set in `connection.py`: body size, header line size, keep-alive time, and that
a request goes on when its client has gone.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from smg_node.config.address import Address, parse_address
from smg_node.http.actions import build_actions
from smg_node.http.body import BodyReader
from smg_node.http.connection import ConnectionLimits, Listener
from smg_node.http.drain import Drain, Phase, Step
from smg_node.http.inflight import Inflight, Outliving
from smg_node.http.middleware import Middleware
from smg_node.http.options import HttpOptions
from smg_node.http.parts import HttpParts
from smg_node.http.pulse import Pulse
from smg_node.http.routes import METRICS_ROUTES, ROUTES, Router
from smg_node.telemetry import declared

_BACKLOG: Final = 2048
_FAREWELL_S: Final = 1.0
"""How long a stopping server waits for requests to end, and then for their last bytes to leave."""


@dataclass(frozen=True, slots=True)
class App:
    """Everything between a parsed request and the node, without any socket."""

    door: Middleware
    metrics_door: Middleware
    drain: Drain
    inflight: Inflight
    pulse: Pulse
    bodies: BodyReader

    def retune(self, options: HttpOptions) -> None:
        """Take over what may change while requests are served."""
        self.drain.retune(settle_s=options.settle_s, grace_s=options.grace_s)
        self.pulse.retune(commit_after_s=options.commit_after_s, keepalive_s=options.keepalive_s)
        self.bodies.retune(max_bytes=options.body_max_bytes, stall_s=options.body_stall_s)


def build_app(parts: HttpParts) -> App:
    """Return the doors of both listeners and what they share."""
    options = parts.options
    drain = Drain(settle_s=options.settle_s, grace_s=options.grace_s)
    inflight = Inflight()
    pulse = Pulse(commit_after_s=options.commit_after_s, keepalive_s=options.keepalive_s)
    bodies = BodyReader(max_bytes=options.body_max_bytes, stall_s=options.body_stall_s)
    actions = build_actions(parts, bodies, drain, pulse, inflight)
    door = Middleware(parts, Router(ROUTES), actions, drain, inflight)
    # A scrape must not hold up the farewell, so it is not counted among the open requests.
    metrics_door = Middleware(parts, Router(METRICS_ROUTES), actions, drain, Inflight())
    return App(door, metrics_door, drain, inflight, pulse, bodies)


class Server:
    """Listens, answers, and leaves in order.

    `start`, then at the end `drain` (may be skipped) and `stop`. `hurry` makes a running drain cut
    what is left at once.
    """

    def __init__(self, parts: HttpParts) -> None:
        self._options = parts.options
        self._clock = parts.clock
        self._app = build_app(parts)
        self._changed = asyncio.Event()
        self._hurried = False
        self._listeners: list[Listener] = []
        self._public: asyncio.Server | None = None
        self._metrics: asyncio.Server | None = None
        self._app.inflight.changed = self._changed.set
        parts.heard.append(self._retune)
        parts.meters.watch(declared.HTTP_INFLIGHT, lambda: {(): self._app.inflight.count})
        parts.meters.watch(declared.HTTP_CONNECTIONS, self._connections)

    @property
    def address(self) -> Address:
        """Where the public API listens, with the port that was really bound."""
        assert self._public is not None, "the server has not started"
        return _bound(self._public)

    @property
    def metrics_address(self) -> Address | None:
        """Where metrics are served, or None without a port for them."""
        return None if self._metrics is None else _bound(self._metrics)

    @property
    def phase(self) -> Phase:
        """How far the farewell is."""
        return self._app.drain.phase

    @property
    def aside(self) -> bool:
        """Whether an operator set the node aside."""
        return self._app.drain.aside

    def set_aside(self, *, on: bool) -> None:
        """Take no new work, or take it again; the node goes on listening."""
        self._app.drain.set_aside(self._clock.monotonic_s(), on=on)

    async def start(self) -> None:
        """Listen on both ports. OSError if one is taken, ValueError for an address that is none."""
        options = self._options
        if options.metrics_listen:
            self._metrics = await self._listen(options.metrics_listen, self._app.metrics_door)
        try:
            self._public = await self._listen(options.listen, self._app.door)
        except BaseException:
            await self.stop()
            raise

    async def drain(self) -> None:
        """Say farewell: return when every request has ended, by itself or by being cut."""
        drain, inflight = self._app.drain, self._app.inflight
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

    def wait_for(self, outliving: Outliving) -> None:
        """Let a farewell wait for this too, and cut it with the requests."""
        self._app.inflight.outliving = outliving
        outliving.changed = self._changed.set

    def hurry(self) -> None:
        """Cut what is left now, in a drain under way or in the next one."""
        self._hurried = True
        self._changed.set()

    async def stop(self) -> None:
        """Close everything: listeners at once, open requests after a second. Safe to call twice."""
        for server in (self._public, self._metrics):
            if server is not None:
                server.close()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.pre_shutdown()
        for listener in listeners:
            await listener.shutdown(_FAREWELL_S)
            await listener.emptied(_FAREWELL_S)
            listener.close()
        self._app.pulse.close()

    def _retune(self, options: HttpOptions) -> None:
        """Take over new options; where to listen stays as it was."""
        self._app.retune(options)
        for listener in self._listeners:
            listener.retune(_limits(options))

    def _take(self, step: Step) -> None:
        if step is Step.CUT_REQUESTS:
            self._app.inflight.cut()
        elif self._public is not None:
            self._public.close()
            self._app.inflight.dismiss()

    async def _listen(self, where: str, door: Middleware) -> asyncio.Server:
        address = parse_address(where)
        listener = Listener(door, _limits(self._options))
        self._listeners.append(listener)
        return await asyncio.get_running_loop().create_server(
            listener,
            address.host,
            address.port,
            backlog=_BACKLOG,
            reuse_port=self._options.reuse_port or None,
        )

    def _connections(self) -> Mapping[tuple[str, ...], float]:
        return {(): sum(listener.count for listener in self._listeners)}


def _bound(server: asyncio.Server) -> Address:
    host, port = server.sockets[0].getsockname()[:2]
    return Address(host, port)


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
