"""Interaction service: creates, shows, follows, cancels and deletes interactions.

An interaction is a response with another face: the same runs, rows, logs and leases. What is special:
its id, by which only this API finds it; its public form; and errors that name this API's parameters.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.json_cursor import quoted
from smg_node.core.request_context import RequestContext
from smg_node.dialects.interactions.errors import unknown_event
from smg_node.dialects.interactions.events.checkpoint import checkpoint_frame
from smg_node.dialects.interactions.events.interaction_object import (
    COMPLETED,
    ERROR,
    has_failed,
    public_object,
)
from smg_node.dialects.interactions.events.stored_replay import cut_short
from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
from smg_node.dialects.interactions.request.reader import InteractionsReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.thought_seals import ThoughtSeals
from smg_node.history.errors import corrupt
from smg_node.history.runs.background_run import RegisteredRun
from smg_node.history.runs.event_following import Attended, Events
from smg_node.history.service.checkpoint_tokens import Checkpoint, CheckpointTokens
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.service.response_service import ResponseService
from smg_node.history.service.resumed_streams import ResumedStream
from smg_node.history.turns.api_ids import is_interaction
from smg_node.history.turns.response_run import ResponseRun
from smg_storage.records import Access

_WHERE: Final = {
    "previous_response_id": "previous_interaction_id",
    "starting_after": "last_event_id",
}
_CODES: Final = {"previous_response_not_found": "previous_interaction_not_found"}


class InteractionService:
    """Serves `/v1/interactions`, on the desk of responses."""

    def __init__(self, desk: ResponseService, parts: HistoryParts) -> None:
        self._desk: Final = desk
        self._seals: Final = ThoughtSeals(parts.vault)
        self._tokens: Final = CheckpointTokens(parts.vault)
        self._options: Final = parts.options
        self._resumed: Final = parts.resumed
        self._now_ms: Final = parts.clock.now_ms

    def reader(self, options: ReaderOptions) -> InteractionsReader:
        """Return the reader of bodies, which opens signatures of this cluster."""
        return InteractionsReader(options, self._seals)

    # ── Made ─────────────────────────────────────────────────────────────────

    async def create(
        self,
        ask: InteractionRequest,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        why_cut: Callable[[], SmgError | None] = lambda: None,
    ) -> ResponseRun:
        """Return an interaction that has not begun; the errors of a response's `create`."""
        with own_words():
            return await self._desk.create(
                ask, context, access, routing_key=routing_key, why_cut=why_cut
            )

    def registers(self, ask: InteractionRequest, access: Access) -> bool:
        """Return whether it outlives its request; then call `register`, without awaiting between."""
        return self._desk.registers(ask, access)

    async def register(
        self,
        ask: InteractionRequest,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
    ) -> RegisteredRun | None:
        """Return an interaction that goes on without its client; None where the store is away, and
        nothing but going on needs it: then `create` serves it. The errors of a response's `register`.
        """
        try:
            with own_words():
                return await self._desk.register(ask, context, access, routing_key=routing_key)
        except SmgError as error:
            needed = ask.background or ask.previous_response_id
            if error.code != "store_unavailable" or needed:
                raise
            return None

    def attend(self, run: Attended) -> Events:
        """Return the events of a registered interaction for its own client, a foreground one."""
        return self._desk.attend(run)

    # ── Resumed ──────────────────────────────────────────────────────────────

    @property
    def checkpoint_ms(self) -> int:
        """How often a stream has a checkpoint at most; -1 for never."""
        return self._options.checkpoint_ms

    def checkpoint(
        self, access: Access, interaction_id: str, number: int, *, leaving: bool
    ) -> bytes:
        """Return the frame of a checkpoint behind event `number`; `leaving`: the node drains, and the
        stream ends with it.
        """
        place = Checkpoint(interaction_id, number, leaving)
        token = self._tokens.issue(place, tenant=access.tenant, now_ms=self._now_ms())
        return checkpoint_frame(interaction_id, number, token)

    def place_of(self, access: Access, token: str) -> Checkpoint:
        """Return the place of a token; INVALID_REQUEST for one that is not the tenant's, or too old."""
        return self._tokens.opened(token, tenant=access.tenant, now_ms=self._now_ms())

    async def resume(self, access: Access, place: Checkpoint) -> Events:
        """Return the events behind a place, live or from the log, as `follow` does.

        Where less was logged than the client has seen, because its node died at once, they are an
        error and the end: never nothing, which would pass for whole, and never a failure without
        its error, whose number the client has seen of something else.
        """
        after = None if place.number < 0 else place.number
        resumed = self._resumed.of(place.interaction_id, drained=place.leaving)
        with _asking(place.interaction_id):
            events = await self._desk.follow(access, place.interaction_id, after, resumed=resumed)
        return resumed.told(self._never_nothing(access, place, events, resumed))

    async def _never_nothing(
        self, access: Access, place: Checkpoint, events: Events, resumed: ResumedStream
    ) -> Events:
        following, explained = place.number + 1, False
        async with aclosing(events) as batches:
            async for told in batches:
                explained = explained or any(one.type == ERROR for one in told)
                *others, last = told
                if last.type == COMPLETED and (explained or not has_failed(last)):
                    yield told
                    return
                before = others if last.type == COMPLETED else told
                if before:
                    yield before
                    following = before[-1].sequence + 1
        kept = await self._desk.retrieve(access, place.interaction_id)
        resumed.lost()
        yield cut_short(kept, following)

    # ── Shown again ──────────────────────────────────────────────────────────

    async def retrieve(self, access: Access, interaction_id: str, *, with_input: bool) -> bytes:
        """Return the public object as it is now; NOT_FOUND `interaction_not_found`."""
        with _asking(interaction_id):
            kept = await self._desk.retrieve(access, interaction_id)
            items = await self._desk.own_input(access, interaction_id) if with_input else None
        return _shown(interaction_id, kept, items)

    async def follow(self, access: Access, interaction_id: str, after: int | None) -> Events:
        """Return the events after number `after` (None: all), up to the end. NOT_FOUND;
        INVALID_REQUEST where the log is gone. They raise SmgError where they break off, and
        INVALID_REQUEST instead of an end where the stream turns out to have no event `after`.
        """
        if after is None:
            with _asking(interaction_id):
                return await self._desk.follow(access, interaction_id, None)
        resumed = self._resumed.of(interaction_id)
        with _asking(interaction_id):
            events = await self._desk.follow(access, interaction_id, after, resumed=resumed)
        return resumed.told(self._behind(access, interaction_id, after, events))

    async def _behind(
        self, access: Access, interaction_id: str, after: int, events: Events
    ) -> Events:
        said = False
        async with aclosing(events) as batches:
            async for told in batches:
                said = True
                yield told
        if said or after == 0:
            return
        # Nothing is behind the last event, and nothing behind one that there never was.
        with _asking(interaction_id):
            last = await self._desk.follow(access, interaction_id, after - 1)
        async with aclosing(last) as batches:
            async for _ in batches:
                return
        raise unknown_event(str(after))

    async def cancel(self, access: Access, interaction_id: str) -> bytes:
        """Return the public object of an interaction that is over now, or about to be; NOT_FOUND."""
        with _asking(interaction_id):
            kept = await self._desk.cancel(access, interaction_id, foreground=True)
        return _shown(interaction_id, kept, None)

    async def delete(self, access: Access, interaction_id: str) -> None:
        """Delete an interaction, also one that is in progress; NOT_FOUND."""
        with _asking(interaction_id):
            await self._desk.delete(access, interaction_id)


def _shown(interaction_id: str, kept: bytes, items: Sequence[ItemDoc] | None) -> bytes:
    try:
        return public_object(kept, items)
    except ValueError as error:
        raise corrupt(f"interaction {interaction_id}") from error


@contextmanager
def _asking(interaction_id: str) -> Iterator[None]:
    """Answer for ids of other APIs as for unknown ones."""
    if not is_interaction(interaction_id):
        raise interaction_not_found(interaction_id)
    try:
        with own_words():
            yield
    except SmgError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        raise interaction_not_found(interaction_id) from error


@contextmanager
def own_words() -> Iterator[None]:
    """Name in errors the parameters of this API."""
    try:
        yield
    except SmgError as error:
        if error.where not in _WHERE and error.code not in _CODES:
            raise
        raise _renamed(error) from error


def _renamed(error: SmgError) -> SmgError:
    message = error.message
    for old, new in _WHERE.items():
        message = message.replace(old, new)
    return SmgError(
        error.kind,
        message.replace("response", "interaction"),
        where=_WHERE.get(error.where or "", error.where),
        code=_CODES.get(error.code, error.code),
        status=error.status,
        retry_after_s=error.retry_after_s,
        excess=error.excess,
    )


def interaction_not_found(interaction_id: str) -> SmgError:
    """Return the error for an interaction that is not there, or is another tenant's."""
    return SmgError(
        ErrorKind.NOT_FOUND,
        f"there is no interaction {quoted(interaction_id)}",
        code="interaction_not_found",
    )
