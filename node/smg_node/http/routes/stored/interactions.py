"""Interaction routes: create, stream, show, follow, cancel and delete interactions.

A stored interaction that is streamed belongs to no request: it goes on for a while when its client
leaves, and any number of clients may follow it.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

from smg_node.core.errors import invalid
from smg_node.dialects.interactions.errors import unknown_event
from smg_node.dialects.interactions.events.interaction_object import public_object
from smg_node.dialects.interactions.request.continuation import TOKEN, continuation_of
from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.field_reader import query_switch
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Reply, Streamed
from smg_node.http.middleware.caller_context import context_of, routing_key
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.ports.history import History, MadeResponse, RegisteredResponse
from smg_node.http.routes.inference.answer_headers import Answering, close_events, note_request
from smg_node.http.routes.stored.checkpoints import Checkpoints
from smg_node.http.routes.stored.follow_stream import FollowStreams
from smg_node.http.routes.stored.history_access import access_of
from smg_node.http.routes.stored.made_stream import history_headers, stream_made
from smg_storage.records import Access

_NUMBER_DIGITS_MAX: Final = 18


class InteractionRoutes:
    """Serves `/v1/interactions`, also under /v1beta and /v1alpha."""

    def __init__(
        self,
        parts: HttpParts,
        history: History,
        bodies: BodyReader,
        streams: FollowStreams,
        pulse: KeepaliveTimer,
        drains: Callable[[], bool],
    ) -> None:
        self._parts = parts
        self._history = history
        self._interactions = history.interactions
        self._bodies = bodies
        self._pulse = pulse
        self._streams = streams
        self._drains = drains

    # ── Made ─────────────────────────────────────────────────────────────────

    async def create(self, request: HttpRequest) -> Reply | Streamed:
        """Answer with a new interaction, or with its events."""
        raw = await self._bodies.json(request)
        body = await self._bodies.large.decoded(raw, nesting_max=self._parts.options.nesting_max)
        access = access_of(request, self._history)
        if body.get(TOKEN) is not None:
            return await self._resumed(request, body, access)
        ask = await self._understood(request, raw, body)
        if self._interactions.registers(ask, access):
            registered = await self._interactions.register(
                ask,
                # How long its client waits for one answer says nothing about how long this may take.
                context_of(request, self._parts.options, streamed=True),
                access,
                routing_key=self._routing_key(request),
            )
            if registered is not None:
                return await self._registered(request, ask, access, registered)
        run = await self._interactions.create(
            ask,
            context_of(request, self._parts.options, streamed=ask.stream),
            access,
            routing_key=self._routing_key(request),
            why_cut=lambda: request.cut,
        )
        answering = self._answering(request, run)
        if ask.stream:
            return await stream_made(answering, run, self._pulse)
        return await _collected(answering, run)

    async def _registered(
        self,
        request: HttpRequest,
        ask: InteractionRequest,
        access: Access,
        run: RegisteredResponse,
    ) -> Reply | Streamed:
        """Answer with an interaction that goes on without its client."""
        made = run.made
        answering = self._answering(request, made)
        try:
            if not ask.stream:
                return Reply(200, public_object(run.body()))
            if ask.background:
                # Whatever becomes of it, its row says so: that is told, and is no failure of this request.
                events = await self._interactions.follow(access, made.id, None)
                marks = self._checkpoints(access, made.id)
                return await self._streams.show(request, events, answering.note, checkpoints=marks)
            return await self._streams.show(
                request,
                self._interactions.attend(run),
                answering.note,
                failure=lambda: made.failure,
                checkpoints=self._checkpoints(access, made.id),
            )
        finally:
            answering.over()

    # ── Resumed ──────────────────────────────────────────────────────────────

    async def _resumed(
        self, request: HttpRequest, body: dict[str, Any], access: Access
    ) -> Streamed:
        """Go on with the stream of an interaction, behind the checkpoint of a token."""
        asked = continuation_of(body)
        place = self._interactions.place_of(access, asked.token)
        if asked.previous_id not in ("", place.interaction_id):
            why = "previous_interaction_id: this token is of another interaction"
            raise invalid(why, "previous_interaction_id", "invalid_continuation_token")
        request.model = asked.model
        events = await self._interactions.resume(access, place)
        return await self._streams.show(
            request,
            events,
            lambda: self._note(request),
            checkpoints=self._checkpoints(access, place.interaction_id),
        )

    def _checkpoints(self, access: Access, interaction_id: str) -> Checkpoints | None:
        every_ms = self._interactions.checkpoint_ms
        if every_ms < 0:
            return None
        return Checkpoints(
            lambda number, leaving: self._interactions.checkpoint(
                access, interaction_id, number, leaving=leaving
            ),
            every_ms=every_ms,
            now_s=self._parts.clock.monotonic_s,
            drains=self._drains,
        )

    def _answering(self, request: HttpRequest, made: MadeResponse) -> Answering:
        return Answering(
            self._parts, request, made.wish, made.generation, lambda: history_headers(made)
        )

    def _routing_key(self, request: HttpRequest) -> str:
        return routing_key(request.headers, self._parts.options.key_headers)

    # ── Shown again ──────────────────────────────────────────────────────────

    async def retrieve(self, request: HttpRequest) -> Reply | Streamed:
        """Answer with an interaction as it is now, or with its events from any of them on."""
        access, interaction_id = self._asked(request)
        if not query_switch(request, "stream") or request.method == "HEAD":
            shown = await self._interactions.retrieve(
                access, interaction_id, with_input=query_switch(request, "include_input")
            )
            return Reply(200, shown)
        after = last_event_id_of(request.query)
        events = await self._interactions.follow(access, interaction_id, after)
        return await self._show(request, events)

    async def cancel(self, request: HttpRequest) -> Reply:
        """Cancel an interaction."""
        return Reply(200, await self._interactions.cancel(*self._asked(request)))

    async def delete(self, request: HttpRequest) -> Reply:
        """Delete an interaction."""
        await self._interactions.delete(*self._asked(request))
        return Reply(200, b"{}")

    async def _show(
        self, request: HttpRequest, events: AsyncIterator[Sequence[NumberedEvent]]
    ) -> Streamed:
        return await self._streams.show(request, events, lambda: self._note(request))

    def _note(self, request: HttpRequest) -> Mapping[str, str]:
        return note_request(self._parts, request)

    # ── Read ─────────────────────────────────────────────────────────────────

    async def _understood(
        self, request: HttpRequest, raw: bytes, body: dict[str, Any]
    ) -> InteractionRequest:
        large, reader = self._bodies.large, self._interactions.reader(self._parts.reading)
        ask = await large.read(raw, body, lambda given: reader.read(given, request))
        request.model = ask.model
        allow_model(request)
        request.trace.set("gen_ai.request.model", ask.model)
        return ask

    def _asked(self, request: HttpRequest) -> tuple[Access, str]:
        return access_of(request, self._history), request.values["id"]


def last_event_id_of(query: Mapping[str, str]) -> int | None:
    """Return the number of the event after which to go on; None from the first one on."""
    spelled = query.get("last_event_id", "")
    if not spelled:
        return None
    if not spelled.isascii() or not spelled.isdigit() or len(spelled) > _NUMBER_DIGITS_MAX:
        raise unknown_event(spelled)
    return int(spelled)


async def _collected(answering: Answering, run: MadeResponse) -> Reply:
    """Answer with the whole interaction; one that broke after it said something is shown as failed."""
    batches = run.told()
    try:
        async for _ in batches:
            pass
    finally:
        await close_events(batches)
        answering.over()
    if run.failure is not None and not run.has_output:
        raise run.failure
    return Reply(200, public_object(run.body()))
