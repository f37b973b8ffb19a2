"""What happens to every request before and after its route, in one place and one order.

request id → trace → route → cross-origin rules → draining → who may ask → the route itself → one
envelope for whatever failed → headers → access log and metrics. No other code builds an error's body,
and none but this one decides whether a connection goes on.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from smg_node.core.errors import SmgError
from smg_node.http.drain import Drain
from smg_node.http.errors import error_reply, internal
from smg_node.http.guard import Guard, cors_headers
from smg_node.http.incoming import ClientLine, Headers, Incoming, split_target
from smg_node.http.inflight import Inflight, draining
from smg_node.http.parts import HttpParts
from smg_node.http.reply import HeadWriter, Reply, Streamed
from smg_node.http.request import HttpRequest
from smg_node.http.routes import Route, Router
from smg_node.http.wire import Wire
from smg_node.telemetry import scope
from smg_node.telemetry.access import AccessLine

Action: TypeAlias = Callable[[HttpRequest], Awaitable[Reply | Streamed]]

_log = logging.getLogger(__name__)

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_PATH_LOGGED_MAX: Final = 256
_UNPARSED: Final = "unparsed"
_UNKNOWN: Final = "unknown"
_CLIENT_GONE: Final = 499
_PREFLIGHT: Final[Mapping[str, str]] = {
    "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
    "access-control-max-age": "600",
}
_EXPOSED: Final = (
    "x-request-id, request-id, x-smg-node, x-smg-routed-worker-id, x-smg-attempts, x-smg-error-code, "
    "x-smg-ignored-params, retry-after, retry-after-ms, x-should-retry, openai-processing-ms, "
    "openai-version, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, "
    "x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "
    "x-ratelimit-reset-tokens, x-smg-limit, x-smg-limit-state, x-smg-history, x-smg-store, idempotent-replayed"
)


class Middleware:
    """The door of one listener: answers each request by the action its route names."""

    def __init__(
        self,
        parts: HttpParts,
        router: Router,
        actions: Mapping[str, Action],
        drain: Drain,
        inflight: Inflight,
    ) -> None:
        self._parts = parts
        self._router = router
        self._actions = actions
        self._drain = drain
        self._inflight = inflight
        self._guard = Guard(parts.authenticator)
        self._heads = HeadWriter()

    async def serve(self, incoming: Incoming) -> bool:
        """Answer one request and say whether the connection goes on; CancelledError when its client has gone away."""
        request = self._open(incoming)
        wire = request.wire
        status = _CLIENT_GONE
        self._inflight.add(request)
        try:
            try:
                admitted = self._admit(request)
                answer = admitted if isinstance(admitted, Reply) else await admitted(request)
            except (Exception, asyncio.CancelledError) as error:
                # A door: a mistake of ours in one request must not reach the connection, let alone others.
                answer = self._failed(request, error)
            if isinstance(answer, Reply):
                self._write(request, answer)
                if wire.behind:
                    await wire.drain()
            status = answer.status
        except ConnectionError:
            return False
        finally:
            self._inflight.remove(request)
            self._record(request, status)
        return wire.keep_alive and not self._drain.refusing

    def unparsed(self, line: ClientLine, error: SmgError) -> None:
        """Answer bytes that are no request; their connection ends."""
        parts = self._parts
        wire = Wire(line, self._heads, parts.clock, http11=True, keep_alive=False, wants_body=True)
        request_id = parts.ids.new("req_")
        reply = error_reply(error, route=None, dialects=parts.dialects, request_id=request_id)
        parts.meters.http(_UNPARSED, "", reply.status, 0.0)
        if not wire.gone:
            wire.reply(reply, {"x-request-id": request_id, "request-id": request_id})

    def cut(self, reason: str) -> None:
        """Count a connection that a limit turned away or ended."""
        self._parts.meters.connection_refused(reason)

    def _open(self, incoming: Incoming) -> HttpRequest:
        parts, headers = self._parts, incoming.headers
        facts = incoming.facts
        if facts is None or facts.path is None:
            path, query = split_target(incoming.target)
            if facts is not None:
                facts.path, facts.query = path, query
        else:
            path, query = facts.path, facts.query
        trace = parts.tracer.begin(incoming.method, headers)
        request_id = self._request_id(headers)
        scope.enter(request_id, trace)
        wire = Wire(
            incoming.line,
            self._heads,
            parts.clock,
            http11=incoming.http11,
            keep_alive=incoming.keep_alive,
            wants_body=incoming.method != "HEAD",
        )
        received_s = parts.clock.monotonic_s()
        request = HttpRequest(incoming, path, query, wire, received_s, request_id, trace)
        request.task = asyncio.current_task()
        return request

    def _request_id(self, headers: Headers) -> str:
        for name in self._parts.options.request_id_headers:
            if name in headers:
                given = headers[name]
                if _REQUEST_ID.fullmatch(given):
                    return given
                break
        return self._parts.ids.new("req_")

    def _failed(self, request: HttpRequest, error: BaseException) -> Reply | Streamed:
        """Return the answer to what went wrong; raise it again where nobody is left to be told."""
        if isinstance(error, SmgError):
            return self._error(request, error)
        if isinstance(error, asyncio.CancelledError):
            if request.cut is None or request.wire.begun:
                raise error
            if request.task is not None:
                request.task.uncancel()
            return self._error(request, request.cut)
        if isinstance(error, ConnectionError) and request.wire.gone:
            raise error
        return self._mistake(request)

    def _admit(self, request: HttpRequest) -> Reply | Action:
        """Return what answers a request that may be answered, or the answer to a browser's preflight."""
        if request.method == "OPTIONS":
            return self._preflight(request)
        found = self._router.find(request.method, request.path)
        route = request.route = found.route
        request.values = found.values
        if request.trace.sampled:
            request.trace.set("http.route", route.path)
        options = self._parts.options
        if options.cors_allowed_origins and route.access in ("public", "data"):
            self._allow_origin(request)
        if route.access != "public":
            drain = self._drain
            if drain.refusing or drain.aside:
                self._refuse_late(request, route)
            request.identity = self._guard.admit(request, route.access, options.data_access)
        return self._actions[route.action]

    def _refuse_late(self, request: HttpRequest, route: Route) -> None:
        """Refuse what comes too late: anything once the node leaves, new work once it was set aside."""
        if self._drain.refusing:
            raise draining(leaving=True)
        if route.access == "data" and self._drain.refuses_work(self._parts.clock.monotonic_s()):
            # Whoever asks again should find another node, and a kept connection leads back here.
            request.wire.keep_alive = False
            raise draining(leaving=False)

    def _preflight(self, request: HttpRequest) -> Reply:
        """Answer a browser that asks whether a page may ask."""
        method = request.headers.get("access-control-request-method", request.method)
        found = self._router.find(method, request.path)
        request.route = found.route
        request.values = found.values
        if found.route.access in ("public", "data"):
            self._allow_origin(request)
        if "access-control-allow-origin" in request.reply_headers:
            wanted = request.headers.get("access-control-request-headers", "")
            if wanted.isascii() and wanted.isprintable() and wanted:
                request.reply_headers["access-control-allow-headers"] = wanted[:1024]
            request.reply_headers.update(_PREFLIGHT)
        return Reply(204)

    def _allow_origin(self, request: HttpRequest) -> None:
        allowed = cors_headers(request.headers, self._parts.options.cors_allowed_origins)
        request.reply_headers.update(allowed)
        if "access-control-allow-origin" in allowed:
            request.reply_headers["access-control-expose-headers"] = _EXPOSED

    def _error(self, request: HttpRequest, error: SmgError) -> Reply:
        request.error_code = error.code
        return error_reply(
            error,
            route=request.route,
            dialects=self._parts.dialects,
            request_id=request.request_id,
        )

    def _mistake(self, request: HttpRequest) -> Reply | Streamed:
        _log.exception("a request failed because of a mistake of ours")
        if request.wire.begun:
            request.wire.reset()
            return Streamed(500)
        return self._error(request, internal())

    def _write(self, request: HttpRequest, reply: Reply) -> None:
        wire = request.wire
        if self._drain.refusing or not request.body.whole:
            # A body nobody read stands in the way of whatever would come after it.
            wire.keep_alive = False
        wire.reply(reply, request.reply_headers)

    def _record(self, request: HttpRequest, status: int) -> None:
        parts = self._parts
        route = request.route.path if request.route is not None else _UNKNOWN
        duration_s = parts.clock.monotonic_s() - request.received_s
        parts.meters.http(route, request.method, status, duration_s)
        if request.identity.tenant:
            parts.meters.tenant_request(request.identity.tenant, status)
        if request.trace.sampled:
            request.trace.end(status, request.error_code)
        if not parts.access.enabled:
            return
        identity = request.identity
        # By position, in the order of its fields: by name it would cost twice as much.
        parts.access.record(
            AccessLine(
                parts.access.now_ms(),
                request.request_id,
                request.method[:16],
                request.path[:_PATH_LOGGED_MAX],
                status,
                round(duration_s * 1000, 3),
                request.wire.bytes_out,
                request.peer,
                request.model[:_PATH_LOGGED_MAX],
                request.worker,
                request.error_code,
                request.trace.trace_id,
                identity.tenant,
                identity.key_id,
            )
        )
