"""Responses socket: `/v1/responses` as a WebSocket, for clients that make many responses one after the other.

A message of the client asks for a response, as the body of a POST does; its events come as messages.
Which of them belongs to which response is told by lanes. What a response is, who may have one and
what it may cost is what it is for a POST: see `response_turn`.

    receive ──▶ lanes ──▶ turn ──▶ POST /v1/responses of this node ──▶ events ──▶ say

The socket ends when its client leaves, which cancels what is being made as it does for a POST; after
an hour; when the node leaves, once what is being made is told; and when its credential is not good
any more.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.dialects.responses.sockets.client_events import (
    Create,
    LanedError,
    read_event,
)
from smg_node.dialects.responses.sockets.server_events import error_event, steer_failed
from smg_node.dialects.responses.sockets.socket_memory import SocketMemory
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Streamed
from smg_node.http.middleware.error_replies import internal
from smg_node.http.middleware.inflight import Inflight
from smg_node.http.routes.inference.answer_headers import uncancel
from smg_node.http.routes.sockets.response_lanes import ResponseLanes
from smg_node.http.routes.sockets.response_turn import ResponseTurn, TurnPlace
from smg_node.http.sockets.handshake import check_handshake
from smg_node.http.sockets.inner_exchange import InnerExchange, inner_head
from smg_node.http.sockets.own_door import OwnDoor
from smg_node.http.sockets.upgrade import accept
from smg_node.http.sockets.web_socket import (
    GOING_AWAY,
    OUR_MISTAKE,
    POLICY,
    RESTARTING,
    SocketRules,
    WebSocket,
)

_log = logging.getLogger("smg_node.http")

_LEAVES: Final = "the node leaves; another one will answer"


@dataclass(frozen=True, slots=True)
class ResponsesSocketRules(SocketRules):
    """Rules of the life of a Responses socket."""

    age_max_s: float = 3_600.0
    """As long as the vendor's own lasts."""


class ResponsesSocketRoutes:
    """Serves the WebSocket of `/v1/responses`."""

    def __init__(
        self,
        parts: HttpParts,
        inflight: Inflight,
        door: OwnDoor,
        rules: ResponsesSocketRules = ResponsesSocketRules(),
    ) -> None:
        self._parts: Final = parts
        self._inflight: Final = inflight
        self._door: Final = door
        self._rules: Final = rules

    async def serve(self, request: HttpRequest) -> Streamed:
        """Be a socket to the client until either side ends that."""
        check_handshake(request, self._parts.options.cors_allowed_origins)
        life = _Life(request, accept(request, self._rules), self._parts, self._door)
        # What a drain waits for are the responses that it makes, which are requests of their own.
        self._inflight.watch(request)
        try:
            await life.lived(self._rules.age_max_s)
        except Exception:
            # A door: whatever it was, the client is told that it is not its doing.
            _log.exception("a socket broke because of a mistake of ours")
            await life.socket.close(OUR_MISTAKE, "the node made a mistake; it has been logged")
        finally:
            life.socket.stop()
        return Streamed(101)


class _Life:
    """One socket, from its handshake on."""

    def __init__(
        self, request: HttpRequest, socket: WebSocket, parts: HttpParts, door: OwnDoor
    ) -> None:
        self.socket: Final = socket
        self._request: Final = request
        ids = frozenset(name.lower() for name in parts.options.request_id_headers)
        head = inner_head(request.head, "POST", "/v1/responses", without=ids)
        self._place: Final = TurnPlace(
            socket, SocketMemory(), lambda body: InnerExchange(door, head, body, request.line)
        )

    async def lived(self, age_max_s: float) -> None:
        """Read the socket until it ends, for whichever reason, and end what is being made."""
        try:
            async with asyncio.TaskGroup() as group:
                lanes = ResponseLanes(group, self._make)
                try:
                    await self._until_end(lanes, age_max_s)
                except ConnectionError:
                    # Gone without a word, as many clients go. Not out of here: a group would wrap it.
                    return
                finally:
                    lanes.cancel()
        except asyncio.CancelledError:
            # The connection was lost, perhaps while the last words were said; or the node waits for nobody any more.
            uncancel()
            with suppress(ConnectionError):
                self.socket.end(RESTARTING, _LEAVES)

    async def _until_end(self, lanes: ResponseLanes, age_max_s: float) -> None:
        try:
            async with asyncio.timeout(age_max_s):
                await self._read(lanes)
        except TimeoutError:
            await self._too_old(lanes)
        except asyncio.CancelledError:
            if self._request.cut is None:
                raise
            uncancel()
            await lanes.finished()
            await self.socket.close(RESTARTING, _LEAVES)

    async def _read(self, lanes: ResponseLanes) -> None:
        socket = self.socket
        while (message := await socket.receive()) is not None:
            if message.kind == "binary":
                error = invalid("a message must be text, one JSON object", None, "invalid_payload")
                await socket.say(error_event(error, ""))
                continue
            await self._take(message.text, lanes)
            await lanes.room()

    async def _take(self, text: str, lanes: ResponseLanes) -> None:
        socket = self.socket
        try:
            wish = read_event(text)
        except LanedError as laned:
            await socket.say(error_event(laned.error, laned.lane))
            return
        if not isinstance(wish, Create):
            # A client names the response that it means, and rarely the lane.
            lane = self._place.making.get(wish.previous_id, wish.lane)
            await socket.say(steer_failed(wish, lane))
            return
        try:
            lanes.add(wish)
        except SmgError as error:
            await socket.say(error_event(error, wish.lane))

    async def _make(self, create: Create) -> None:
        turn = ResponseTurn(create, self._place)
        try:
            await turn.run()
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            # A door: a mistake of ours in one response must not reach the others.
            _log.exception("a response of a socket broke because of a mistake of ours")
            await self.socket.say(error_event(internal(), create.lane))
        if turn.refused_caller:
            self.socket.end(POLICY, "the credential is not good any more")

    async def _too_old(self, lanes: ResponseLanes) -> None:
        error = SmgError(
            ErrorKind.INVALID_REQUEST,
            "the socket is as old as one may get; open another one",
            code="websocket_connection_limit_reached",
        )
        await self.socket.say(error_event(error, ""))
        await lanes.finished()
        await self.socket.close(GOING_AWAY, "the socket is as old as one may get")
