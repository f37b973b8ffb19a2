"""Relay answers: an HTTP worker's answer written to the client, streamed or whole.

A stream of events is kept alive by comments like any other of this node's, but only between two
events, and a failure is an event of its own. Any other answer goes out whole, or piece by piece
where it is large: then a failure resets the connection, because nothing else can signal it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from smg_node.core.errors import SmgError
from smg_node.dialects.dialect import COMMENT
from smg_node.dialects.openai_errors import error_frame
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.event_stream import EventStream
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import JSON, Reply, Streamed, name_list
from smg_node.http.middleware.caller_context import context_of, routing_key
from smg_node.http.middleware.error_replies import family_of, internal
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.route_table import is_openais
from smg_node.http.routes.inference.direct_answer import DirectAnswer, DirectAnswers
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import Asks, Translation
from smg_node.pipeline.relay.relay_headers import to_worker
from smg_node.pipeline.relay.relay_request import Relayable

if TYPE_CHECKING:
    from smg_node.pipeline.relay.relay_run import RelayRun

_ERROR_EVENTS: Final[Mapping[str, tuple[bytes, bytes]]] = {
    "messages": (b"event: error\ndata: ", b"\n\n"),
    "gemini": (b"data: ", b"\r\n\r\n"),
}
"""What stands around an error in a stream, in APIs that are not OpenAI's."""
_EVENT_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")

_log = logging.getLogger("smg_node.http")


class RelayedStream(EventStream, eq=False):
    """A stream whose events may come in pieces."""

    between: bool = True
    """Whether the last event is complete, as far as it has been said."""

    async def send(self, frames: bytes) -> None:
        """See `EventStream`."""
        self.between = frames.endswith(_EVENT_ENDS)
        await super().send(frames)

    def ping(self) -> None:
        """Write a comment, if that does not split an event."""
        if self.between:
            super().ping()


class _Relaying:
    """One relayed request, and its answer headers."""

    run: "RelayRun"
    """Set before anything is asked of it."""

    def __init__(self, parts: HttpParts, request: HttpRequest, asks: Asks | None) -> None:
        self.request = request
        self.head: Head | None = None
        self.asks = asks
        self.direct: DirectAnswer | None = None
        """What tells the answer, while own engines are called."""
        self._parts = parts

    def opened(
        self, direct: DirectAnswers, stream: EventStream, translation: Translation
    ) -> DirectAnswer:
        """Return the outlet of a call of own engines."""
        self.direct = direct.opened(translation, stream)
        return self.direct

    def over(self) -> None:
        """Finish the notes, and count parameters that own engines ignored."""
        self.headers()
        if self.direct is not None:
            for name in self.direct.ignored:
                self._parts.meters.ignored_parameter(name)

    def headers(self) -> Mapping[str, str]:
        """Set the answer's headers and the access log's fields from what is known now; return the
        headers.
        """
        request, run, parts = self.request, self.run, self._parts
        headers = request.reply_headers
        request.worker = run.worker
        if self.head is not None:
            for name, value in self.head.headers.items():
                headers.setdefault(name, value)
        if self.direct is not None and self.direct.ignored:
            headers["x-smg-ignored-params"] = name_list(self.direct.ignored)
        if is_openais(request.route):
            taken_s = parts.clock.monotonic_s() - request.received_s
            headers["openai-processing-ms"] = str(round(taken_s * 1000))
        ticket = run.meter.ticket
        if ticket is not None:
            headers.update(ticket.headers(family_of(request.route)))
        if parts.options.expose_routing_headers:
            headers["x-smg-node"] = parts.identity.node
            headers["x-smg-attempts"] = str(run.attempts)
            if run.worker:
                headers["x-smg-routed-worker-id"] = run.worker
        return headers


class Relaying:
    """Answers requests that are relayed."""

    def __init__(
        self, parts: HttpParts, pulse: KeepaliveTimer, direct: DirectAnswers | None = None
    ) -> None:
        """Take what answers of own engines are written with, where routes may lead to some."""
        self._parts = parts
        self._pulse = pulse
        self._direct = direct

    async def answer(
        self, asked: Relayable, request: HttpRequest, asks: Asks | None = None
    ) -> Reply | Streamed:
        """Answer one request; SmgError while nothing was written. `asks` is where it comes from, if that is not the
        API alone.
        """
        parts, headers = self._parts, request.headers
        request.model = asked.model
        allow_model(request)
        request.trace.set("gen_ai.request.model", asked.model)
        relaying = _Relaying(parts, request, asks)
        keepalive = COMMENT if asks is None else parts.dialects[asks.dialect].keepalive
        stream = RelayedStream(request.wire, relaying.headers, keepalive=keepalive)
        if asks is not None and self._direct is not None:
            asks = replace(asks, outlet=partial(relaying.opened, self._direct, stream))
        relaying.run = parts.relays.start(
            asked,
            to_worker(headers),
            context_of(request, parts.options, streamed=asked.streamed),
            routing_key(headers, parts.options.key_headers),
            asks,
        )
        if asked.streamed:
            self._pulse.add(stream)
        try:
            return await self._carry(relaying, stream)
        except asyncio.CancelledError:
            if request.cut is None:
                raise
            _uncancel()
            return self._fail(relaying, stream, request.cut)
        except SmgError as error:
            return self._fail(relaying, stream, error)
        except Exception:
            if request.wire.gone or not request.wire.begun:
                raise
            # A door: the head is out already, so the answer itself must say what happened.
            _log.exception("a relayed request broke because of a mistake of ours")
            return self._fail(relaying, stream, internal())
        finally:
            stream.let_go()
            self._pulse.remove(stream)
            relaying.over()

    async def _carry(self, relaying: _Relaying, stream: RelayedStream) -> Reply | Streamed:
        """Carry the answer to the client. ConnectionError if it is gone."""
        async with aclosing(relaying.run.answer()) as pieces:
            head = await _head(pieces)
            relaying.head = head
            if head.told:
                async for _ in pieces:
                    raise AssertionError("nothing follows what was told")
                return Streamed()
            if head.whole:
                body = await _piece(pieces)
                relaying.headers()
                return Reply(head.status, body, head.content_type or JSON)
            if head.events:
                async for piece in pieces:
                    assert isinstance(piece, bytes), "an answer has one head"
                    await stream.send(piece)
                stream.end(b"")
                return Streamed()
            return await self._large(relaying, head, pieces)

    async def _large(
        self, relaying: _Relaying, head: Head, pieces: AsyncGenerator[Head | bytes, None]
    ) -> Streamed:
        wire, begun = relaying.request.wire, False
        async for piece in pieces:
            assert isinstance(piece, bytes), "an answer has one head"
            if begun:
                wire.chunk(piece)
            else:
                begun = True
                kind = {"content-type": head.content_type or JSON}
                wire.begin(head.status, {**relaying.headers(), **kind}, piece)
            await wire.drain()
        wire.end(b"")
        return Streamed(head.status)

    def _fail(self, relaying: _Relaying, stream: RelayedStream, error: SmgError) -> Streamed:
        """End an answer with an error, by whichever means is left; raises it where nothing was
        written yet.
        """
        request = relaying.request
        request.error_code = error.code
        if not request.wire.begun:
            raise error
        direct = relaying.direct
        if direct is not None and direct.ended:
            # Its client was told how it ended.
            return Streamed()
        if not stream.committed:
            request.wire.reset()
            return Streamed(error.status)
        torn = b"" if stream.between else b"\n\n"
        stream.end(torn + self._frame(relaying, error))
        return Streamed()

    def _frame(self, relaying: _Relaying, error: SmgError) -> bytes:
        """Return the last event of a stream that failed, in its client's API."""
        asks, direct = relaying.asks, relaying.direct
        if direct is not None and direct.said:
            return direct.failed(error)
        if asks is None or asks.dialect not in _ERROR_EVENTS:
            return error_frame(error)
        dialect = self._parts.dialects[asks.dialect]
        before, after = _ERROR_EVENTS[asks.dialect]
        return before + dialect.error_body(error, relaying.request.request_id) + after


async def _head(pieces: AsyncGenerator[Head | bytes, None]) -> Head:
    head = await anext(pieces)
    assert isinstance(head, Head), "an answer begins with its head"
    return head


async def _piece(pieces: AsyncGenerator[Head | bytes, None]) -> bytes:
    """Return the one piece of a whole answer, whose run is over then."""
    piece = await anext(pieces)
    assert isinstance(piece, bytes), "an answer has one head"
    async for _ in pieces:
        raise AssertionError("a whole answer is one piece")
    return piece


def _uncancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
