"""Middleware: the steps around every route, in one place and one order.

Request id → trace → route → cross-origin rules → draining → authorization → the route itself → one
envelope for every error → headers → access log and metrics. No other code answers an error, and no
other code decides whether a connection goes on. Findings about a head hold for the next request
that has it (`head_findings`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from smg_node.access.identity import KeysWantedError
from smg_node.admission.header_values import GROUPS
from smg_node.core.access.permissions import Access
from smg_node.core.errors import SmgError
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import is_plain
from smg_node.http.message.head_findings import NEVER_MS, NO_HEADERS, HeadFindings, given_id
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import HeadWriter, Reply, Streamed
from smg_node.http.message.request_head import ClientLine, Head
from smg_node.http.message.response_writer import Wire
from smg_node.http.middleware.access_lines import PATH_LOGGED_MAX, access_lines
from smg_node.http.middleware.authorization import Authorizing, cors_headers, usual_guard
from smg_node.http.middleware.drain_phases import Drain
from smg_node.http.middleware.error_replies import error_reply, internal
from smg_node.http.middleware.inflight import Inflight, draining
from smg_node.http.route_table import Found, Route, Router, WrongMethodError
from smg_node.telemetry.metrics.cells import LATE_MAX, Spread, Tally
from smg_node.telemetry.traces import request_scope as scope
from smg_node.telemetry.traces.request_scope import NO_TRACE, Trace

if TYPE_CHECKING:
    from smg_node.http.middleware.issuer_waiting import IssuerWaiting

Action: TypeAlias = Callable[[HttpRequest], Awaitable[Reply | Streamed]]

_log = logging.getLogger("smg_node.http")

_UNPARSED: Final = "unparsed"
_UNKNOWN: Final = "unknown"
_CLIENT_GONE: Final = 499
_FOR_PAGES: Final[frozenset[Access]] = frozenset({"public", "data"})
"""Routes that pages of allowed origins may use; never those of operators."""
_NOT_ADMITTED: Final = (401, 403)
_PRIVATE: Final[Mapping[str, str]] = {"cache-control": "no-store"}
"""Of answers to operators: nobody in between keeps them."""
_PREFLIGHT: Final[Mapping[str, str]] = {
    "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
    "access-control-max-age": "600",
}
_EXPOSED: Final = (
    "x-request-id, request-id, x-smg-node, x-smg-routed-worker-id, x-smg-attempts, x-smg-error-code, "
    "x-smg-ignored-params, retry-after, retry-after-ms, x-should-retry, openai-processing-ms, "
    "openai-version, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, "
    "x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "
    "x-ratelimit-reset-tokens, x-smg-limit, x-smg-limit-state, x-smg-limit-reason, x-smg-history, x-smg-store, "
    "idempotent-replayed, "
    + ", ".join(
        f"anthropic-ratelimit-{group}-{what}"
        for group in GROUPS["anthropic"]
        for what in ("limit", "remaining", "reset")
    )
)


class Middleware:
    """Dispatcher of one listener: answers each request by the action its route names."""

    def __init__(
        self,
        parts: HttpParts,
        router: Router,
        actions: Mapping[str, Action],
        drain: Drain,
        inflight: Inflight,
        guard: "Authorizing | None" = None,
        *,
        hsts_s: int = 0,
    ) -> None:
        """Take `guard`, which admits requests in place of the usual one, and for how long browsers are to come by
        https only.
        """
        self._parts = parts
        self._router = router
        self._actions = actions
        self._drain = drain
        self._inflight = inflight
        self._guard = usual_guard(parts) if guard is None else guard
        self._heads = HeadWriter(parts.clock, hsts_s)
        self._monotonic_s = parts.clock.monotonic_s
        self._now_ms = parts.clock.now_ms
        self._token = parts.ids.token
        self._waiting: IssuerWaiting | None = None
        parts.access.reads(access_lines)
        self._record_line = parts.access.record

    async def serve(self, incoming: HttpRequest) -> bool:
        """Answer one request and say whether the connection goes on; CancelledError when its client has gone away."""
        request, drain, inflight = incoming, self._drain, self._inflight
        standing = self._open(request)
        wire, status = request.wire, _CLIENT_GONE
        inflight.requests[request] = None
        try:
            try:
                action = standing.action
                if action is None or drain.draining:
                    try:
                        action = self._admit(request)
                    except KeysWantedError as wanted:
                        action = await self._admit_after(request, wanted)
                answer = await action(request)
            except (Exception, asyncio.CancelledError) as error:
                # A door: a mistake of ours in one request must not reach the connection, let alone others.
                answer = self._failed(request, error)
            if isinstance(answer, Reply):
                if drain.refusing or not request.body.whole:
                    # A body nobody read stands in the way of whatever would come after it.
                    wire.keep_alive = False
                wire.reply(answer, NO_HEADERS if answer.form else request.reply_headers)
                if request.line.writing_paused:
                    await wire.drain()
            status = answer.status
        except ConnectionError:
            return False
        finally:
            if inflight.quiet:
                # `remove`, in here: hardly anybody waits for requests to end.
                del inflight.requests[request]
            else:
                inflight.remove(request)
            self._record(request, standing, status)
        return wire.keep_alive and not drain.refusing

    def unparsed(self, line: ClientLine, error: SmgError) -> None:
        """Answer bytes that are no request; their connection ends."""
        parts = self._parts
        wire = Wire(line, self._heads, http11=True, keep_alive=False)
        request_id = parts.ids.new("req_")
        reply = error_reply(error, route=None, dialects=parts.dialects, request_id=request_id)
        parts.meters.http(_UNPARSED, "", reply.status, 0.0)
        if not wire.gone:
            wire.reply(reply, {"x-request-id": request_id, "request-id": request_id})

    def cut(self, reason: str) -> None:
        """Count a connection that a limit refused or ended."""
        self._parts.meters.connection_refused(reason)

    def _open(self, request: HttpRequest) -> HeadFindings:
        """Set a request's ids, its trace and the wire of its answer; return the findings about its
        head.
        """
        parts, head = self._parts, request.head
        request.received_s = self._monotonic_s()
        request.received_ms = now_ms = self._now_ms()
        standing = head.standing
        if standing is None and head.common is not None:
            standing = head.standing = head.common.standing
        if (
            standing is None
            or standing.options is not parts.options
            or standing.keys_version != parts.authenticator.version
            or standing.until_ms <= now_ms
        ):
            standing = self._stranger(head)
        request.standing = standing
        trace = standing.trace
        if trace is not NO_TRACE:
            request.trace = trace = self._traced(request) if trace is None else trace
        request.token = token = self._token(now_ms)
        request.request_id = request_id = standing.request_id or f"req_{token}"
        scope.enter((request_id, trace))
        request.wire = Wire(
            request.line, self._heads, head.http11, head.keep_alive, standing.wants_body
        )
        return standing

    def _stranger(self, head: Head) -> HeadFindings:
        """Return findings about a new head, with nothing decided yet."""
        parts = self._parts
        standing = HeadFindings(head.method[:16], head.path[:PATH_LOGGED_MAX])
        standing.options = parts.options
        standing.keys_version = parts.authenticator.version
        standing.request_id = given_id(head.headers, parts.options.request_id_headers)
        if not parts.tracer.recording:
            standing.trace = parts.tracer.begin(head.method, head.headers)
        return standing

    def _traced(self, request: HttpRequest) -> Trace:
        """Return the trace of a request that may be recorded."""
        trace, route = self._parts.tracer.begin(request.method, request.headers), request.route
        if trace.sampled and route is not None:
            trace.set("http.route", route.path)
        return trace

    def _failed(self, request: HttpRequest, error: BaseException) -> Reply | Streamed:
        """Return the reply for an error; raise it again where the client is gone."""
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

    def _admit(self, request: HttpRequest) -> Action:
        """Return the action for an admitted request, and cache it for the next one with its head."""
        if request.method == "OPTIONS":
            return self._preflight
        standing, keys = request.standing, self._parts.authenticator
        found = self._find(request, request.method)
        route = standing.route = found.route
        standing.values = found.values
        if request.trace.sampled:
            request.trace.set("http.route", route.path)
        options = self._parts.options
        if route.upgrades or "upgrade" in request.headers:
            self._look_at_offer(request, route)
        if options.cors_allowed_origins and route.access in _FOR_PAGES:
            standing.reply_headers = self._allow_origin(request)
        if route.access not in _FOR_PAGES:
            standing.reply_headers = _PRIVATE
        if route.permission != "public":
            self._refuse_late(request, route)
            standing.identity = who = self._guard.admit(
                request, route.permission, options.data_access, route.own
            )
            standing.until_ms = who.expires_ms or NEVER_MS
        action = self._actions[route.action]
        # Operators are few, and what they may hangs on where they ask from.
        if route.access in _FOR_PAGES and keys.settled:
            standing.plain_body = is_plain(request.headers)
            standing.action = action
            request.head.standing = standing
            common = request.head.common
            # Whom proxies are believed for hangs on the connection.
            if common is not None and not options.trusted_proxies and _is_anyones(request, route):
                common.standing = standing
        return action

    def _look_at_offer(self, request: HttpRequest, route: Route) -> None:
        """Refuse the offer of a WebSocket where there is none; else let a key in it be found with other keys."""
        # Imported here: most nodes never see one.
        from smg_node.http.sockets.handshake import no_socket_here, offers
        from smg_node.http.sockets.offered_key import keyed

        if not offers(request):
            return
        if not route.upgrades:
            raise no_socket_here(request.path)
        request.head = keyed(request.head)

    async def _admit_after(self, request: HttpRequest, wanted: KeysWantedError) -> Action:
        """Admit a request once what its credential needs is there, or not in time."""
        if self._waiting is None:
            # Imported with the first one: most nodes never wait for an issuer.
            from smg_node.http.middleware.issuer_waiting import IssuerWaiting

            self._waiting = IssuerWaiting()
        await self._waiting.wait(wanted)
        return self._admit(request)

    def _refuse_late(self, request: HttpRequest, route: Route) -> None:
        """Refuse late requests: all of them once the node leaves, new work once it was set aside."""
        if self._drain.refusing:
            raise draining(leaving=True)
        if not self._drain.draining or route.access != "data":
            return
        if not self._drain.takes_work(self._monotonic_s()):
            # Whoever asks again should find another node, and a kept connection leads back here.
            request.wire.keep_alive = False
            raise draining(leaving=False)

    async def _preflight(self, request: HttpRequest) -> Reply:
        """Answer a browser's CORS preflight, or the question which methods a path takes."""
        method = request.headers.get("access-control-request-method")
        if method is None:
            return Reply(204, headers={"allow": self._allowed(request)})
        found = self._find(request, method)
        request.standing.route = found.route
        if found.route.access in _FOR_PAGES:
            self._allow_origin(request)
        if "access-control-allow-origin" in request.reply_headers:
            wanted = request.headers.get("access-control-request-headers", "")
            if wanted.isascii() and wanted.isprintable() and wanted:
                request.reply_headers["access-control-allow-headers"] = wanted[:1024]
            request.reply_headers.update(_PREFLIGHT)
        return Reply(204)

    def _find(self, request: HttpRequest, method: str) -> Found:
        """Return the route; where there is none, a page of an allowed origin may read the error all the same,
        unless the path is an operator's.
        """
        try:
            return self._router.find(method, request.path)
        except SmgError as error:
            access = error.access if isinstance(error, WrongMethodError) else _FOR_PAGES
            if access & _FOR_PAGES:
                self._allow_origin(request)
            raise

    def _allowed(self, request: HttpRequest) -> str:
        """Return the methods of a path, as `allow` lists them; NOT_FOUND for an unknown path."""
        try:
            found = self._find(request, request.method)
        except WrongMethodError as error:
            return error.allow
        raise AssertionError(f"no route takes {found.route.method} {request.path}")

    def _allow_origin(self, request: HttpRequest) -> Mapping[str, str]:
        """Return the headers that let a page read the answer, if its origin is allowed."""
        allowed = cors_headers(request.headers, self._parts.options.cors_allowed_origins)
        if "access-control-allow-origin" in allowed:
            allowed = {**allowed, "access-control-expose-headers": _EXPOSED}
        request.reply_headers.update(allowed)
        return allowed

    def _error(self, request: HttpRequest, error: SmgError) -> Reply:
        if request.identity.restrictions is not None:
            from smg_node.http.middleware.restricted_requests import concealed

            error = concealed(error, request.model)
        request.error_code = error.code
        route = request.route
        # Who may not ask at all leaves no traces that would push out others'.
        if route is not None and _is_work(route) and error.status not in _NOT_ADMITTED:
            self._parts.refusals.add(
                request.request_id,
                route.dialect or route.path.rpartition("/")[2],
                request.model,
                error,
                began_ms=request.received_ms,
                ended_ms=self._now_ms(),
            )
        return error_reply(
            error,
            route=route,
            dialects=self._parts.dialects,
            request_id=request.request_id,
            named=self._router.dialect_of(request.path) if route is None else "",
            headers=request.headers,
        )

    def _mistake(self, request: HttpRequest) -> Reply | Streamed:
        _log.exception("a request failed because of a mistake of ours")
        if request.wire.begun:
            request.wire.reset()
            return Streamed(500)
        return self._error(request, internal())

    def _record(self, request: HttpRequest, standing: HeadFindings, status: int) -> None:
        counted = standing.counted.get(status)
        if counted is None:
            counted = standing.counted[status] = self._counted(standing, status)
        requests, times, tenants = counted
        duration_s = self._monotonic_s() - request.received_s
        requests.value += 1
        # `observe`, in here.
        late = times.late
        late.append(duration_s)
        if len(late) >= LATE_MAX:
            times.settle()
        if tenants is not None:
            tenants.value += 1
        trace = request.trace
        if trace.sampled:
            trace.end(status, request.error_code)
        request.status = status
        request.duration_s = duration_s
        self._record_line(request)

    def _counted(self, standing: HeadFindings, status: int) -> tuple[Tally, Spread, Tally | None]:
        """Return the metric cell of requests that end in this way."""
        meters, route = self._parts.meters, standing.route
        path = _UNKNOWN if route is None else route.label
        tenant = standing.identity.tenant
        return (
            *meters.requests(path, standing.method, status),
            meters.tenant_requests(tenant, status) if tenant else None,
        )


def _is_anyones(request: HttpRequest, route: Route) -> bool:
    """Whether what was found holds for the same head on any connection, whatever its address and certificate."""
    return (
        route.access == "data"
        and request.identity.restrictions is None
        and request.line.certificate is None
    )


def _is_work(route: Route) -> bool:
    return route.access == "data" and route.method == "POST"
