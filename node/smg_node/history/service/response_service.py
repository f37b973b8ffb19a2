"""Response service: creates, retrieves, follows, cancels, deletes responses; counts their tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.json_cursor import quoted
from smg_node.core.request_context import RequestContext
from smg_node.dialects.responses.events.list_bodies import unknown_cursor
from smg_node.dialects.responses.items.item_document import ItemDoc, items_in_steps, length_of
from smg_node.dialects.responses.request.generate_request import generate_request_in_steps
from smg_node.dialects.responses.request.idempotency_key import IdempotencyKey, PriorResult
from smg_node.dialects.responses.request.items_to_turns import sealed
from smg_node.dialects.responses.request.response_request import ResponseRequest, unstored
from smg_node.history.context.fitted_history import fitted
from smg_node.history.context.history_loading import HistoryLoader, LoadedHistory
from smg_node.history.context.paced_steps import paced
from smg_node.history.context.sealed_content import opened
from smg_node.history.errors import asking_store, corrupt, response_not_found
from smg_node.history.peers.follower_notices import FollowerNotices
from smg_node.history.ports import NO_STORE, Measure
from smg_node.history.runs.background_run import RegisteredRun
from smg_node.history.runs.cancellation import Cancelling, not_cancellable
from smg_node.history.runs.event_following import Attended, Events, Following, attended
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.service.presenters import presenter_of
from smg_node.history.service.resumed_streams import ResumedStream
from smg_node.history.turns.api_ids import PREFIXES
from smg_node.history.turns.idempotency import HeldKey, IdempotencyService
from smg_node.history.turns.response_reservation import ResponseReservation
from smg_node.history.turns.response_run import ResponseRun
from smg_node.pipeline.generation.run_interface import ShownPrompt
from smg_storage.ids import is_id, new_id
from smg_storage.records import Access, PageAsk, StoredResponse


@dataclass(frozen=True, slots=True)
class Selected:
    """Request with the history that the model will see. `known` counts the items before truncation."""

    hydrated: LoadedHistory
    wish: GenerateRequest
    known: int
    used: int
    model: str
    """The model's own name, where it had to be found out."""


class ResponseService:
    """Serves `/v1/responses`."""

    def __init__(self, parts: HistoryParts) -> None:
        self._parts = parts
        self._live: dict[tuple[str, str], ResponseRun] = {}
        self._hydrator = HistoryLoader(
            parts.keeper,
            clock=parts.clock,
            rng=parts.rng,
            options=parts.options,
            threads=parts.threads,
        )
        self._keys = IdempotencyService(
            parts.keeper, clock=parts.clock, rng=parts.rng, options=parts.options
        )
        self._following = Following(
            parts.keeper,
            parts.runs.find,
            options=parts.options,
            notices=FollowerNotices(parts.peers, parts.runs.find, now_s=parts.clock.monotonic_s),
        )
        self._cancelling = Cancelling(
            parts.keeper,
            parts.runs.find,
            show=self._following.snapshot,
            peers=parts.peers,
            now_s=parts.clock.monotonic_s,
        )

    # ── Made ─────────────────────────────────────────────────────────────────

    async def create(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        why_cut: Callable[[], SmgError | None] = lambda: None,
        held: HeldKey | None = None,
    ) -> ResponseRun:
        """Return a response that has not begun; its history is read and fits. OVERLOADED
        `store_unavailable` if the store fails or could not keep it; RATE_LIMITED `storage_quota`.
        `why_cut` returns the error of a node that stops it. `held` is its key.
        """
        assert not ask.background, "what nobody waits for is registered"
        entry = ResponseReservation(held)
        return await self._made(
            ask, context, access, entry, routing_key=routing_key, why_cut=why_cut
        )

    async def reserve(
        self, ask: ResponseRequest, asked: IdempotencyKey, context: RequestContext, access: Access
    ) -> HeldKey | PriorResult | None:
        """Return a key for this response, or its earlier result; None where nothing is stored.
        CONFLICT `idempotency_in_progress`, `idempotency_conflict`; OVERLOADED `store_unavailable`.
        """
        parts = self._parts
        if not ask.store or parts.keeper.store.kind == NO_STORE:
            return None
        left_s = context.deadline_s - parts.clock.monotonic_s()
        return await self._keys.reserve(access, asked, self._hydrator.thread(ask), for_s=left_s)

    def registers(self, ask: ResponseRequest, access: Access) -> bool:
        """Return whether it outlives its request; then call `register`, without awaiting between."""
        if ask.background:
            return True
        parts = self._parts
        return (
            ask.stream
            and ask.store
            and parts.options.grace_s(ask.api) > 0
            and parts.keeper.store.kind != NO_STORE
            and parts.runs.has_room(access.tenant)
        )

    async def register(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        held: HeldKey | None = None,
    ) -> RegisteredRun:
        """Return a response that goes on without its client; it is in the store already.
        RATE_LIMITED `background_limit`; else the errors of `create` and of a generation's
        beginning.
        """
        parts = self._parts
        if parts.keeper.store.kind == NO_STORE:
            message = "nothing is kept here, so nothing can be made in the background"
            raise invalid(message, "background", _UNSUPPORTED)
        with parts.runs.place(access.tenant) as place:
            if ask.background:
                # It is stopped in time by who carries it, and says why.
                latest_s = parts.clock.monotonic_s() + parts.options.background_deadline_s
                context = structs.replace(context, deadline_s=latest_s + _MARGIN_S)
            made = await self._made(
                ask, context, access, ResponseReservation(held), routing_key=routing_key
            )
            try:
                await made.generation.enter()
                return await parts.runs.start(made, background=ask.background, place=place)
            except BaseException:
                made.generation.leave()
                await made.entry.over(None)
                raise

    async def _made(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        entry: ResponseReservation,
        *,
        routing_key: str,
        why_cut: Callable[[], SmgError | None] = lambda: None,
    ) -> ResponseRun:
        parts = self._parts
        if parts.keeper.store.kind == NO_STORE:
            ask = unstored(ask)
        try:
            if ask.store:
                with asking_store():
                    parts.keeper.check_can_keep()
                entry.take(await parts.quotas.response(access, length_of(ask.items)))
            selected = await self.select(ask, context, access, thread=entry.thread)
            now_ms = parts.clock.now_ms()
            response_id = entry.response_id or new_id(
                PREFIXES[ask.api], selected.hydrated.thread, now_ms=now_ms, chance=parts.rng
            )
            store, said = parts.keeper.store, selected.hydrated.ask.items
            wish = await entry.answer(
                store, access, selected.wish, said, response_id, parts.clock.now_ms
            )
        except BaseException:
            await entry.over(None)
            raise
        hydrated = selected.hydrated
        if routing_key:
            wish = structs.replace(wish, routing_key=routing_key)
        parts.named(response_id, context.request_id)
        return ResponseRun(
            id=response_id,
            access=access,
            hydrated=hydrated,
            teller=presenter_of(
                parts,
                hydrated,
                model=selected.model,
                answer_id=response_id,
                tenant=access.tenant,
                now_ms=now_ms,
            ),
            generation=parts.generations.start(ask.api, wish, context),
            wish=wish,
            keeper=parts.keeper,
            clock=parts.clock,
            created_us=now_ms * 1000,
            kept_us=parts.options.responses_kept_s * 1_000_000,
            known=selected.known,
            used=selected.used,
            stores=ask.store,
            entry=entry,
            conversation_kept_us=parts.options.conversations_kept_s * 1_000_000,
            why_cut=why_cut,
            live=self._live,
        )

    async def select(
        self, ask: ResponseRequest, context: RequestContext, access: Access, *, thread: str = ""
    ) -> Selected:
        """Return a request with as much of its history as it asks for, or as fits, in this
        `thread`.
        """
        hydrated = await self._hydrator.load(ask, access, thread=thread)
        if hydrated.depth:
            self._parts.chain_depth(hydrated.depth)
        blobs = await paced(sealed(hydrated.items))
        model = ask.model
        measure: Measure | None = None
        if blobs or ask.wants_encrypted or ask.truncation == "auto":
            measure = await self._parts.measures.of(ask.model, deadline_s=context.deadline_s)
            model = measure.name
        texts = opened(self._parts.vault, blobs, tenant=access.tenant, model=model)
        items: Sequence[ItemDoc] = hydrated.items
        if measure is not None and ask.truncation == "auto":
            items = await fitted(hydrated, measure, texts)
        wish = await paced(
            generate_request_in_steps(hydrated.ask, items, opened=texts, context=hydrated.items)
        )
        return Selected(hydrated, wish, len(hydrated.items), len(items), model)

    async def count(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        show: ShownPrompt | None,
    ) -> int:
        """Return how many tokens the prompt of this request has, with tools as `show` adds them; no engine is called."""
        selected = await self.select(replace(ask, store=False), context, access)
        measure = await self._parts.measures.of(ask.model, deadline_s=context.deadline_s)
        [prompt], serving = selected.wish.prompts, selected.wish.serving
        if serving is not None and show is not None and type(prompt) is ChatPrompt:
            prompt = await show(ask.api, prompt, serving, context, ask.model)
        return await measure.count(prompt)

    # ── Shown again ──────────────────────────────────────────────────────────

    async def retrieve(self, access: Access, response_id: str) -> bytes:
        """Return the object of a response as it is now; NOT_FOUND."""
        live = self._live.get((access.tenant, response_id))
        if live is not None:
            return live.teller.response()
        run = self._parts.runs.find(access.tenant, response_id)
        if run is not None:
            return run.body()
        return await self._following.snapshot(access, await self._record(access, response_id))

    async def follow(
        self,
        access: Access,
        response_id: str,
        after: int | None,
        *,
        resumed: ResumedStream | None = None,
    ) -> Events:
        """Return the events of a response after number `after` (None: all), up to its end.
        NOT_FOUND; INVALID_REQUEST where the log is gone. They raise SmgError where they break off.

        `resumed` is told whose the answer is, and counted where it is refused.
        """
        if (access.tenant, response_id) in self._live:
            raise _unlogged(response_id)
        if resumed is None:
            return await self._following.follow(access, response_id, after)
        try:
            return await self._following.follow(access, response_id, after, seen=resumed.seen)
        except SmgError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                resumed.refused()
            raise

    async def resume(self, access: Access, response_id: str, after: int) -> Events:
        """Return the events of a response after number `after`, as `follow` does, for a client that goes
        on with a stream that broke.
        """
        resumed = self._parts.resumed.of(response_id)
        return resumed.told(await self.follow(access, response_id, after, resumed=resumed))

    def attend(self, run: Attended) -> Events:
        """Return the events of a registered response for its own client, a foreground one."""
        return attended(run)

    async def input_items(
        self, access: Access, response_id: str, page: PageAsk
    ) -> tuple[Sequence[bytes], bool]:
        """Return documents of a response's own input, and whether there are more; NOT_FOUND."""
        return _page(await self.own_input(access, response_id), page)

    async def own_input(self, access: Access, response_id: str) -> Sequence[ItemDoc]:
        """Return all of a response's own input; NOT_FOUND."""
        live = self._live.get((access.tenant, response_id))
        if live is not None:
            return live.hydrated.ask.items
        record = await self._record(access, response_id)
        try:
            return await paced(items_in_steps(record.input))
        except ValueError as error:
            raise corrupt(f"input of response {response_id}") from error

    async def delete(self, access: Access, response_id: str) -> None:
        """Delete a response, also one that is still in progress; NOT_FOUND."""
        live = self._live.pop((access.tenant, response_id), None)
        if live is not None:
            live.stores = False
        maker = "" if live is not None else await self._cancelling.maker(access, response_id)
        with asking_store():
            there = is_id(response_id) and await self._parts.keeper.store.delete_response(
                access, response_id
            )
        await self._cancelling.forget(access, response_id, maker)
        if not there and live is None:
            raise response_not_found(response_id)

    async def cancel(self, access: Access, response_id: str, *, foreground: bool = False) -> bytes:
        """Return the object of a background response that is over now, or about to be. NOT_FOUND;
        INVALID_REQUEST `cannot_cancel` for a foreground response, unless it goes on without its
        client and `foreground` ones may be cancelled.
        """
        if (access.tenant, response_id) in self._live:
            raise not_cancellable(response_id)
        return await self._cancelling.cancel(access, response_id, foreground=foreground)

    async def _record(self, access: Access, response_id: str) -> StoredResponse:
        if not is_id(response_id):
            raise response_not_found(response_id)
        with asking_store():
            record = await self._parts.keeper.store.get_response(access, response_id)
        if record is None:
            raise response_not_found(response_id)
        return record


_UNSUPPORTED: Final = "unsupported_value"
_MARGIN_S: Final = 5.0
"""So much later than its own deadline a generation would end by itself."""


def _page(items: Sequence[ItemDoc], page: PageAsk) -> tuple[Sequence[bytes], bool]:
    ordered = list(reversed(items)) if page.newest_first else list(items)
    begin = 0
    if page.after:
        ids = [item.id for item in ordered]
        if page.after not in ids:
            raise unknown_cursor(page.after)
        begin = ids.index(page.after) + 1
    rest = ordered[begin : begin + page.limit + 1]
    return [item.document for item in rest[: page.limit]], len(rest) > page.limit


def _unlogged(response_id: str) -> SmgError:
    return invalid(
        f"{quoted(response_id)} is being made for another client; its events can be had when it is over",
        "stream",
        "stream_not_resumable",
    )
