"""Response routes: create, stream, retrieve, follow, count, compact, cancel, delete responses.

As with every generation, no more is read from the engine while the client has unread output. Unlike
others, a response is stored before its last event goes out: a client that saw it complete can
retrieve it.

A *registered* response belongs to no request: it goes on when its client leaves, and any number of
clients may follow it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from smg_node.dialects.responses.events.list_bodies import (
    deleted_response,
    include_of,
    input_tokens_body,
    list_body,
    page_of,
    starting_after_of,
)
from smg_node.dialects.responses.request.idempotency_key import (
    KEY_HEADER,
    REPLAYED_HEADER,
    PriorResult,
    idempotency_key,
)
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.errors import AnsweredBeforeError, response_not_found
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import query_switch
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Reply, Streamed, name_list
from smg_node.http.middleware.caller_context import context_of, routing_key
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.ports.history import History, MadeResponse
from smg_node.http.routes.inference.answer_headers import (
    Answering,
    close_events,
    note_request,
)
from smg_node.http.routes.inference.charged_work import charged
from smg_node.http.routes.stored.follow_stream import FollowStreams
from smg_node.http.routes.stored.history_access import access_of
from smg_node.http.routes.stored.made_stream import history_headers, stream_made
from smg_storage.records import Access

if TYPE_CHECKING:
    from smg_node.core.generation.tool_serving import ToolServing
    from smg_node.history.turns.idempotency import HeldKey


class ResponseRoutes:
    """Serves `/v1/responses`."""

    def __init__(
        self, parts: HttpParts, history: History, bodies: BodyReader, pulse: KeepaliveTimer
    ) -> None:
        self._parts = parts
        self._history = history
        self._responses = history.responses
        self._bodies = bodies
        self._pulse = pulse
        self._streams = FollowStreams(pulse)

    # ── Made ─────────────────────────────────────────────────────────────────

    async def create(self, request: HttpRequest) -> Reply | Streamed:
        """Answer with a new response, or with its events."""
        raw = await self._bodies.json(request)
        ask = await self._understood(request, raw)
        access = access_of(request, self._history)
        held: HeldKey | None = None
        if KEY_HEADER in request.headers:
            found = await self._key(request, raw, ask, access)
            if isinstance(found, PriorResult):
                return await self._again(request, ask, access, found)
            if found is None:
                # Nothing is kept that could be answered again, and a retry is as good as the first time.
                ask = replace(ask, ignored=(*ask.ignored, KEY_HEADER))
            held = found
        try:
            return await self._made(request, ask, access, held)
        except AnsweredBeforeError as before:
            return await self._again(request, ask, access, PriorResult(before.response_id))

    async def _made(
        self, request: HttpRequest, ask: ResponseRequest, access: Access, held: "HeldKey | None"
    ) -> Reply | Streamed:
        """Answer with a new response, registered if it outlives its request."""
        parts = self._parts
        if self._responses.registers(ask, access):
            return await self._register(request, ask, access, held)
        run = await self._responses.create(
            ask,
            context_of(request, parts.options, streamed=ask.stream),
            access,
            routing_key=routing_key(request.headers, parts.options.key_headers),
            why_cut=lambda: request.cut,
            held=held,
        )
        answering = Answering(
            parts, request, run.wish, run.generation, lambda: history_headers(run)
        )
        if ask.stream:
            return await stream_made(answering, run, self._pulse)
        return await self._collect(answering, run)

    async def _key(
        self, request: HttpRequest, raw: bytes, ask: ResponseRequest, access: Access
    ) -> "HeldKey | PriorResult | None":
        """Return a key to make a response under, or the earlier result; None where nothing is
        stored.
        """
        spelled = request.headers[KEY_HEADER]
        asked = idempotency_key(spelled, method=request.method, path=request.path, body=raw)
        context = context_of(request, self._parts.options, streamed=ask.stream)
        return await self._responses.reserve(ask, asked, context, access)

    async def _again(
        self, request: HttpRequest, ask: ResponseRequest, access: Access, earlier: PriorResult
    ) -> Reply | Streamed:
        """Answer with the earlier result of the same request."""
        request.reply_headers[REPLAYED_HEADER] = "true"
        if not ask.stream:
            return Reply(200, await self._responses.retrieve(access, earlier.response_id))
        events = await self._responses.follow(access, earlier.response_id, None)
        return await self._streams.show(request, events, lambda: self._note(request))

    async def _register(
        self,
        request: HttpRequest,
        ask: ResponseRequest,
        access: Access,
        held: "HeldKey | None",
    ) -> Reply | Streamed:
        """Answer with a registered response, which goes on without its client."""
        parts = self._parts
        run = await self._responses.register(
            ask,
            # How long its client waits for one answer says nothing about how long this may take.
            context_of(request, parts.options, streamed=True),
            access,
            routing_key=routing_key(request.headers, parts.options.key_headers),
            held=held,
        )
        made = run.made
        answering = Answering(
            parts, request, made.wish, made.generation, lambda: history_headers(made)
        )
        try:
            if not ask.stream:
                return Reply(200, run.body())
            if ask.background:
                # Whatever becomes of it, its row says so: that is told, and is no failure of this request.
                events = await self._responses.follow(access, made.id, None)
                return await self._streams.show(request, events, answering.note)
            return await self._streams.show(
                request,
                self._responses.attend(run),
                answering.note,
                failure=lambda: made.failure,
            )
        finally:
            answering.over()

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

    async def compact(self, request: HttpRequest) -> Reply:
        """Answer with a compaction of the request's history."""
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
        """Answer with the number of tokens of the request's prompt; no engine is called."""
        ask = await self._read(request)
        context = context_of(request, self._parts.options, streamed=False)
        access = access_of(request, self._history)
        count = await charged(
            self._parts,
            request,
            ask.model,
            lambda: self._responses.count(ask, context, access, self._parts.shown_prompt),
        )
        return Reply(200, input_tokens_body(count))

    # ── Shown again ──────────────────────────────────────────────────────────

    async def retrieve(self, request: HttpRequest) -> Reply | Streamed:
        """Answer with a response as it is now, or with its events from any of them on."""
        _check_include(request.query)
        after, streams = starting_after_of(request.query), query_switch(request, "stream")
        _note_unused(request, streams=streams)
        access, response_id = self._asked(request)
        if not streams or request.method == "HEAD":
            return Reply(200, await self._responses.retrieve(access, response_id))
        if after is None:
            events = await self._responses.follow(access, response_id, None)
        else:
            events = await self._responses.resume(access, response_id, after)
        return await self._streams.show(request, events, lambda: self._note(request))

    async def input_items(self, request: HttpRequest) -> Reply:
        """Answer with a page of a response's own input."""
        _check_include(request.query)
        page = page_of(request.query)
        documents, more = await self._responses.input_items(*self._asked(request), page)
        return Reply(200, list_body(documents, has_more=more))

    async def delete(self, request: HttpRequest) -> Reply:
        """Delete a response."""
        access, response_id = self._asked(request)
        await self._responses.delete(access, response_id)
        return Reply(200, deleted_response(response_id))

    async def cancel(self, request: HttpRequest) -> Reply:
        """Cancel a background response."""
        return Reply(200, await self._responses.cancel(*self._asked(request)))

    def _note(self, request: HttpRequest) -> Mapping[str, str]:
        return note_request(self._parts, request)

    # ── Read ─────────────────────────────────────────────────────────────────

    async def _read(self, request: HttpRequest) -> ResponseRequest:
        ask = await self._understood(request, await self._bodies.json(request))
        # What is only counted or summed up is not kept, so nothing could be answered again.
        ignored = (KEY_HEADER,) if KEY_HEADER in request.headers else ()
        return replace(ask, ignored=(*ask.ignored, *ignored))

    async def _understood(self, request: HttpRequest, raw: bytes) -> ResponseRequest:
        large, reader = self._bodies.large, ResponsesReader(self._parts.reading)
        body = await large.decoded(raw, nesting_max=self._parts.options.nesting_max)
        ask = await large.read(raw, body, reader.read)
        if ask.serving is not None:
            ask = replace(ask, serving=_told_of(ask.serving, request))
        request.model = ask.model
        allow_model(request)
        request.trace.set("gen_ai.request.model", ask.model)
        return ask

    def _asked(self, request: HttpRequest) -> tuple[Access, str]:
        response_id = request.values["id"]
        if response_id.startswith("int_"):
            # An answer of another API, which shows it there.
            raise response_not_found(response_id)
        return access_of(request, self._history), response_id


def _told_of(serving: "ToolServing", request: HttpRequest) -> "ToolServing":
    """Return the tools with the headers of which servers may be told some."""
    from smg_node.core.forwardable_headers import forwardable

    return structs.replace(serving, headers=forwardable(request.headers))


def _note_unused(request: HttpRequest, *, streams: bool) -> None:
    """Name what is asked of a stream where there is none, and padding, which there never is."""
    unused = []
    if "starting_after" in request.query and not streams:
        unused.append("starting_after")
    if query_switch(request, "include_obfuscation"):
        unused.append("include_obfuscation")
    if unused:
        request.reply_headers["x-smg-ignored-params"] = name_list(unused)


def _check_include(query: Mapping[str, str]) -> None:
    getall = getattr(query, "getall", None)
    for name in ("include", "include[]"):
        if name in query:
            include_of(getall(name) if getall is not None else [query[name]])
