"""Response turn: one response of a Responses socket, from the request for it to its last event.

It asks the node's own `POST /v1/responses`, whose server-sent events are the socket's messages, but
for the framing. What fails before there is a stream becomes an `error` event; the socket goes on.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.responses.sockets.client_events import Create, Fields, text_of
from smg_node.dialects.responses.sockets.server_events import (
    TERMINAL,
    error_event,
    in_lane,
    read_head,
    refused_event,
    response_in,
    with_response,
)
from smg_node.dialects.responses.sockets.socket_memory import (
    Continued,
    SocketMemory,
    body_bytes,
    warming,
)
from smg_node.dialects.sse_reader import EventLines
from smg_node.http.sockets.inner_exchange import InnerExchange, limit_headers
from smg_node.http.sockets.web_socket import WebSocket

_DONE: Final = b"[DONE]"
_UNAUTHENTICATED: Final = 401
_WITH_RESPONSE: Final = frozenset({"response.created", "response.in_progress", *TERMINAL})


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where turns happen: their socket, what it remembers, and how it asks for a body."""

    socket: WebSocket
    memory: SocketMemory
    asking: Callable[[bytes], InnerExchange]
    making: dict[str, str] = field(default_factory=dict)
    """The lanes of the responses that are being made, by their ids."""


class ResponseTurn:
    """One response, made by `run`."""

    def __init__(self, create: Create, place: TurnPlace) -> None:
        self._create: Final = create
        self._place: Final = place
        self._ended = False
        self._id = ""
        self.refused_caller = False
        """Whether the credential of the socket is not good any more."""

    async def run(self) -> None:
        """Make it and tell it. ConnectionError if the client is gone."""
        place, create = self._place, self._create
        gone: ConnectionError | None = None
        asked = place.memory.continued(create)
        exchange = place.asking(body_bytes(asked if create.generates else warming(asked)))
        async with asyncio.TaskGroup() as group:
            exchange.begin(group)
            try:
                if await exchange.head() == 200:
                    await self._tell(exchange, asked)
                else:
                    await self._refuse(exchange, asked)
            except ConnectionError as error:
                # Not out of here as it is: a group would wrap it.
                gone = error
            finally:
                exchange.cancel()
                place.making.pop(self._id, None)
        if gone is not None:
            raise gone

    async def _refuse(self, exchange: InnerExchange, asked: Continued) -> None:
        status = exchange.answer.status
        self._place.memory.failed(asked)
        if not status:
            await self._say(error_event(_broken(), self._create.lane))
            return
        parts: list[bytes] = []
        while part := await exchange.more():
            parts.append(part)
        self.refused_caller = status == _UNAUTHENTICATED
        headers = limit_headers(exchange.answer.headers)
        body, lane = b"".join(parts), self._create.lane
        await self._say(refused_event(status, body, lane, headers))

    async def _tell(self, exchange: InnerExchange, asked: Continued) -> None:
        lines = EventLines()
        warms = not self._create.generates
        while part := await exchange.more():
            for event in lines.feed(part):
                if event == _DONE:
                    continue
                kind = read_head(event).type
                if kind in _WITH_RESPONSE:
                    event = self._changed(kind, event, asked)
                elif warms:
                    # Nobody asked for the one token that it took.
                    continue
                if warms and kind == "response.in_progress":
                    continue
                await self._say(in_lane(event, self._create.lane))
        if not self._ended:
            self._place.memory.failed(asked)
            await self._say(error_event(_broken(), self._create.lane))

    def _changed(self, kind: str, event: bytes, asked: Continued) -> bytes:
        """Return an event with a response as the client is told it, and remember that if it is the last."""
        changes: dict[str, Any] = {}
        if asked.said_previous:
            changes["previous_response_id"] = asked.said_previous
        if not self._create.generates and kind != "response.failed":
            changes |= _warmed(asked, kind, ends=kind in TERMINAL)
        if changes:
            event = with_response(event, changes)
        if not self._id:
            self._id = text_of(response_in(event).get("id"))
            self._place.making[self._id] = self._create.lane
        if kind in TERMINAL:
            self._ended = True
            self._remember(kind, event, asked)
        if not self._create.generates and kind == "response.incomplete":
            event = b'{"type":"response.completed"' + event[len(b'{"type":"response.incomplete"') :]
        return event

    def _remember(self, kind: str, event: bytes, asked: Continued) -> None:
        memory, lane = self._place.memory, self._create.lane
        if kind == "response.failed":
            memory.failed(asked)
            return
        response: Fields = response_in(event)
        memory.made(lane, asked, response)

    async def _say(self, event: bytes) -> None:
        await self._place.socket.say(event)


def _warmed(asked: Continued, kind: str, *, ends: bool) -> Mapping[str, Any]:
    """Return what is told otherwise of a response that was only prepared."""
    changes: dict[str, Any] = {"max_output_tokens": asked.body.get("max_output_tokens")}
    if ends:
        changes |= {"status": "completed", "incomplete_details": None, "output": []}
    return changes


def _broken() -> SmgError:
    return SmgError(
        ErrorKind.INTERNAL, "the answer broke off before its end", code="response_broken_off"
    )
