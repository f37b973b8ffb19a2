"""The routes of responses: created, streamed or not; shown again, counted, compacted, deleted.

As with every generation, nothing is read from the engine before the client has taken what came before. Unlike others, a
response is kept before its last event goes out: who was told that it is complete can come back for it.
"""

import asyncio
import logging
from collections.abc import Mapping

from smg_node.core.errors import SmgError, invalid
from smg_node.dialects.json_body import read_json
from smg_node.dialects.responses.ask import ResponseAsk
from smg_node.dialects.responses.lists import (
    deleted_response,
    include_of,
    input_tokens_body,
    list_body,
    page_of,
)
from smg_node.dialects.responses.reader import ResponsesReader
from smg_node.dialects.responses.told import DONE, frame
from smg_node.http.answering import Answering, close_events, uncancel
from smg_node.http.asking import context_of, routing_key
from smg_node.http.body import BodyReader
from smg_node.http.errors import internal
from smg_node.http.fields import query_switch
from smg_node.http.history_access import access_of
from smg_node.http.history_ports import History, MadeResponse
from smg_node.http.parts import HttpParts
from smg_node.http.pulse import Pulse
from smg_node.http.reply import Reply, Streamed
from smg_node.http.request import HttpRequest
from smg_node.http.sse import EventStream
from smg_storage.records import Access

_log = logging.getLogger(__name__)


class ResponseRoutes:
    """Serves `/v1/responses`."""

    def __init__(
        self, parts: HttpParts, history: History, bodies: BodyReader, pulse: Pulse
    ) -> None:
        self._parts = parts
        self._history = history
        self._responses = history.responses
        self._bodies = bodies
        self._pulse = pulse

    # ── Made ─────────────────────────────────────────────────────────────────

    async def create(self, request: HttpRequest) -> Reply | Streamed:
        """Answer with a new response, or with its events."""
        parts, ask = self._parts, await self._read(request)
        run = await self._responses.create(
            ask,
            context_of(request, parts.options, streamed=ask.stream),
            access_of(request, self._history),
            routing_key=routing_key(request.headers, parts.options.key_headers),
            why_cut=lambda: request.cut,
        )
        answering = Answering(
            parts, request, run.wish, run.generation, lambda: _history_headers(run)
        )
        if ask.stream:
            return await self._stream(answering, run)
        return await self._collect(answering, run)

    async def _collect(self, answering: Answering, run: MadeResponse) -> Reply:
        batches = run.told()
        try:
            async for _ in batches:
                pass
        finally:
            await close_events(batches)
            answering.over()
        if run.failure is not None:
            raise run.failure
        return Reply(200, run.body())

    async def _stream(self, answering: Answering, run: MadeResponse) -> Streamed:
        request = answering.request
        stream = EventStream(request.wire, answering.note)
        self._pulse.add(stream)
        try:
            await _pump(run, stream)
            request.error_code = "" if run.failure is None else run.failure.code
        except asyncio.CancelledError:
            if request.cut is None:
                raise
            uncancel()
            _end(request, stream, run, request.cut)
        except SmgError as error:
            _end(request, stream, run, error)
        except Exception:
            if request.wire.gone:
                raise
            # A door: the status may be sent already, so the stream itself must say what happened.
            _log.exception("a response broke because of a mistake of ours")
            _end(request, stream, run, internal())
        finally:
            self._pulse.remove(stream)
            answering.over()
        return Streamed()

    async def compact(self, request: HttpRequest) -> Reply:
        """Answer with the history that a request brings to mind, summed up."""
        ask = await self._read(request)
        summary = await self._responses.compact(
            ask,
            context_of(request, self._parts.options, streamed=False),
            access_of(request, self._history),
        )
        answering = Answering(self._parts, request, summary.wish, summary.run)
        try:
            return Reply(200, await summary.body())
        finally:
            answering.over()

    async def input_tokens(self, request: HttpRequest) -> Reply:
        """Answer how many tokens the prompt of a request has; no engine is asked."""
        ask = await self._read(request)
        count = await self._responses.count(
            ask,
            context_of(request, self._parts.options, streamed=False),
            access_of(request, self._history),
        )
        return Reply(200, input_tokens_body(count))

    # ── Shown again ──────────────────────────────────────────────────────────

    async def retrieve(self, request: HttpRequest) -> Reply:
        """Answer with a response as it is now."""
        _check_include(request.query)
        if query_switch(request, "stream"):
            raise invalid("a stream cannot be picked up again yet", "stream", "unsupported_value")
        return Reply(200, await self._responses.retrieve(*self._asked(request)))

    async def input_items(self, request: HttpRequest) -> Reply:
        """Answer with a part of what a response was given itself."""
        _check_include(request.query)
        page = page_of(request.query)
        documents, more = await self._responses.input_items(*self._asked(request), page)
        return Reply(200, list_body(documents, has_more=more))

    async def delete(self, request: HttpRequest) -> Reply:
        """Forget a response."""
        access, response_id = self._asked(request)
        await self._responses.delete(access, response_id)
        return Reply(200, deleted_response(response_id))

    async def cancel(self, request: HttpRequest) -> Reply:
        """End a response that is made in the background."""
        return Reply(200, await self._responses.cancel(*self._asked(request)))

    # ── Read ─────────────────────────────────────────────────────────────────

    async def _read(self, request: HttpRequest) -> ResponseAsk:
        raw = await self._bodies.json(request)
        body = read_json(raw, nesting_max=self._parts.options.nesting_max)
        ask = ResponsesReader(self._parts.reading).read(body)
        request.model = ask.model
        request.trace.set("gen_ai.request.model", ask.model)
        return ask

    def _asked(self, request: HttpRequest) -> tuple[Access, str]:
        return access_of(request, self._history), request.values["id"]


def _check_include(query: Mapping[str, str]) -> None:
    getall = getattr(query, "getall", None)
    for name in ("include", "include[]"):
        if name in query:
            include_of(getall(name) if getall is not None else [query[name]])


def _history_headers(run: MadeResponse) -> Mapping[str, str]:
    more = "" if run.complete else "+"
    headers = {"x-smg-history": f"items={run.used}/{run.known}{more}; tokens={run.prompt_tokens}"}
    if run.spooled:
        headers["x-smg-store"] = "spooled"
    return headers


async def _pump(run: MadeResponse, stream: EventStream) -> None:
    """Carry events to the client until their end. Raises what it failed with while nothing has been written."""
    batches = run.told()
    try:
        async for told in batches:
            if run.failure is not None and not stream.committed:
                raise run.failure
            frames = b"".join([frame(one) for one in told])
            if run.over:
                stream.end(frames + DONE)
            else:
                await stream.send(frames)
    finally:
        await close_events(batches)


def _end(request: HttpRequest, stream: EventStream, run: MadeResponse, error: SmgError) -> None:
    """End a stream with an error, by whichever means is left."""
    request.error_code = error.code
    if not stream.committed:
        raise error
    if not run.last_words:
        # Without words of its own the only honest end is a broken connection.
        stream.break_off()
        return
    stream.end(b"".join([frame(one) for one in run.last_words]) + DONE)
