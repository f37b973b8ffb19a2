"""Realtime socket: `/v1/realtime` as sessions of text in front of any model that generates.

The handshake finds the model and the caller's right to it, so what cannot be is refused with a status
before there is a socket. A session lives in the process that took it. Its answers are generations
like any others: each is admitted, limited, placed, continued elsewhere and explained by itself.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from smg_node.access.identity import KeysWantedError
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.request_context import RequestContext
from smg_node.dialects.realtime.session import Session
from smg_node.dialects.realtime.session_options import SessionOptions
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Streamed
from smg_node.http.middleware.authorization import usual_guard
from smg_node.http.middleware.caller_context import context_of
from smg_node.http.middleware.inflight import Inflight
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.routes.sockets.session_driver import SessionDriver
from smg_node.http.routes.sockets.session_prompts import SessionMeasure, SessionPrompts
from smg_node.http.sockets.handshake import check_handshake
from smg_node.http.sockets.upgrade import accept
from smg_node.http.sockets.web_socket import OUR_MISTAKE, SocketRules, WebSocket
from smg_node.pipeline.generation.run_interface import Run
from smg_storage.ids import new_id, new_thread

if TYPE_CHECKING:
    from smg_node.core.ports import Rng

_log = logging.getLogger("smg_node.http")

SESSIONS_MAX: Final = 4_096
"""Of one process. A session costs memory for as long as its client likes."""
_DIALECT: Final = "realtime"
_NOT_SERVED: Final = ("call_id", "intent")


@dataclass(frozen=True, slots=True)
class RealtimeRules(SocketRules):
    """Rules of realtime sockets."""

    sessions_max: int = SESSIONS_MAX
    age_max_s: int = 3_600
    idle_max_s: int = 900


class RealtimeSocketRoutes:
    """Serves the WebSocket of `/v1/realtime`."""

    def __init__(
        self,
        parts: HttpParts,
        inflight: Inflight,
        chance: "Rng",
        rules: RealtimeRules = RealtimeRules(),
    ) -> None:
        self._parts: Final = parts
        self._inflight: Final = inflight
        self._chance: Final = chance
        self._rules: Final = rules
        self._open = 0

    async def serve(self, request: HttpRequest) -> Streamed:
        """Be a session to the client until either side ends that."""
        parts = self._parts
        check_handshake(request, parts.options.cors_allowed_origins)
        request.model = model = _model_asked(request)
        allow_model(request)
        context = parts.catalog.model(model).context
        # The tokens of a model that others serve are their own affair.
        tokens = None if parts.relays.takes(model) else parts.tokens
        measure = SessionMeasure(model, context, tokens)
        if self._open >= self._rules.sessions_max:
            raise SmgError(
                ErrorKind.RATE_LIMITED,
                f"this node has {self._rules.sessions_max} sessions, as many as it may",
                code="too_many_sessions",
                retry_after_s=1.0,
            )
        self._open += 1
        try:
            await self._live(request, accept(request, self._rules), measure)
        finally:
            self._open -= 1
        return Streamed(101)

    async def _live(self, request: HttpRequest, socket: WebSocket, measure: SessionMeasure) -> None:
        parts = self._parts
        driver = SessionDriver(
            self._session(request),
            socket,
            SessionPrompts(measure),
            begin=lambda response_id, wish: self._begin(request, response_id, wish),
            readmit=lambda: self._readmit(request),
            clock=parts.clock,
        )
        # A drain tells it at once, and waits for what it is answering.
        self._inflight.movable[request] = lambda: True
        try:
            await driver.lived(leaving=lambda: request.cut is not None)
        except Exception:
            # A door: whatever it was, the client is told that it is not its doing.
            _log.exception("a session broke because of a mistake of ours")
            await socket.close(OUR_MISTAKE, "the node made a mistake; it has been logged")
        finally:
            self._inflight.movable.pop(request, None)
            socket.stop()

    def _session(self, request: HttpRequest) -> Session:
        rules, now_ms, chance = self._rules, self._parts.clock.now_ms(), self._chance
        thread = new_thread(chance)
        return Session(
            request.model,
            session_id=new_id("sess", thread, now_ms=now_ms, chance=chance),
            conversation_id=new_id("conv", thread, now_ms=now_ms, chance=chance),
            now_ms=now_ms,
            chance=chance,
            options=SessionOptions(
                reader=self._parts.reading, age_max_s=rules.age_max_s, idle_max_s=rules.idle_max_s
            ),
        )

    def _begin(self, request: HttpRequest, response_id: str, wish: GenerateRequest) -> Run:
        """Return a generation of a request of its own, which goes by the response's id in all that is told of it."""
        parts = self._parts
        relayed = parts.relays.takes(wish.model)
        generations = parts.translating if relayed else parts.generations
        return generations.start(_DIALECT, wish, self._context(request, response_id))

    def _context(self, request: HttpRequest, response_id: str) -> RequestContext:
        parts = self._parts
        usual = context_of(request, parts.options, streamed=True)
        now_s, now_ms = parts.clock.monotonic_s(), parts.clock.now_ms()
        return structs.replace(
            usual,
            request_id=response_id,
            received_s=now_s,
            deadline_s=now_s + usual.deadline_s - usual.received_s,
            upstream_headers={**usual.upstream_headers, "x-request-id": response_id},
            received_ms=now_ms,
            token=parts.ids.token(now_ms),
        )

    def _readmit(self, request: HttpRequest) -> None:
        """Return if the session's caller may still ask; else raise why not."""
        parts, route = self._parts, request.route
        who = request.identity
        if not who.key_id or route is None:
            # Nobody's credential can go away.
            return
        request.received_ms = parts.clock.now_ms()
        try:
            usual_guard(parts).admit(
                request, route.permission, parts.options.data_access, route.own
            )
        except KeysWantedError:
            # What it needs is on its way: it was good a moment ago.
            return


def _model_asked(request: HttpRequest) -> str:
    """Return the model of the URL; INVALID_REQUEST for none, and for other kinds of sessions."""
    query = request.query
    for name in _NOT_SERVED:
        if name in query:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"sessions by {name} are not served here; ask for one by model",
                where=name,
                code="not_implemented",
                status=501,
            )
    model = query.get("model", "")
    if not model:
        raise invalid("is required in the query", "model", "missing_required_parameter")
    if "session_id" in query:
        raise SmgError(
            ErrorKind.NOT_FOUND,
            "there is no such session: it ended with its socket",
            where="session_id",
            code="session_not_found",
        )
    return model
