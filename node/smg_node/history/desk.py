"""Responses: made, shown again, deleted; and what can be asked about one before it is made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from smg_node.core.context import RequestContext
from smg_node.core.cursor import quoted
from smg_node.core.errors import SmgError, invalid
from smg_node.core.ports import Clock, Rng
from smg_node.core.request import GenerateRequest
from smg_node.dialects.responses.ask import ResponseAsk
from smg_node.dialects.responses.item import ItemDoc, items_of
from smg_node.dialects.responses.lists import unknown_cursor
from smg_node.dialects.responses.teller import ResponseTeller
from smg_node.dialects.responses.turns import sealed
from smg_node.dialects.responses.wish import wish_of
from smg_node.history.errors import asking_store, corrupt, response_not_found
from smg_node.history.fit import Search, budget_of, layout_of, too_long
from smg_node.history.hydrate import Hydrated, Hydrator
from smg_node.history.ports import (
    NO_STORE,
    HistoryOptions,
    Keeper,
    Measure,
    Measures,
    Vault,
)
from smg_node.history.run import ResponseRun
from smg_node.history.sealing import opened, sealer
from smg_node.pipeline.run import Generations
from smg_storage.ids import is_id, new_id
from smg_storage.records import Access, PageAsk, StoredResponse

DIALECT: Final = "responses"


@dataclass(frozen=True, slots=True)
class HistoryParts:
    """What history is made of; built once."""

    keeper: Keeper
    generations: Generations
    measures: Measures
    vault: Vault
    clock: Clock
    rng: Rng
    options: HistoryOptions


@dataclass(frozen=True, slots=True)
class Selected:
    """A request as the model will see it. `known` counts the items before any were left out."""

    hydrated: Hydrated
    wish: GenerateRequest
    known: int
    used: int
    model: str
    """The model's own name, where it had to be found out."""


class ResponseDesk:
    """Serves `/v1/responses`."""

    def __init__(self, parts: HistoryParts) -> None:
        self._parts = parts
        self._live: dict[tuple[str, str], ResponseRun] = {}
        self._hydrator = Hydrator(
            parts.keeper, clock=parts.clock, rng=parts.rng, options=parts.options
        )

    # ── Made ─────────────────────────────────────────────────────────────────

    async def create(
        self,
        ask: ResponseAsk,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        why_cut: Callable[[], SmgError | None] = lambda: None,
    ) -> ResponseRun:
        """Return a response that has not begun; its history is read and fits, nothing is sent anywhere yet.

        OVERLOADED `store_unavailable` if it cannot be read, or if what comes of it could not be kept.

        `why_cut` is asked, when it is stopped, whether the node itself did that.
        """
        if ask.background:
            raise invalid("background responses are not supported yet", "background", _UNSUPPORTED)
        parts = self._parts
        if parts.keeper.store.kind == NO_STORE:
            ask = replace(ask, store=False)
        if ask.store:
            with asking_store():
                parts.keeper.check_can_keep()
        selected = await self.select(ask, context, access)
        hydrated, wish = selected.hydrated, selected.wish
        if routing_key:
            wish = replace(wish, routing_key=routing_key)
        now_ms = parts.clock.now_ms()
        response_id = new_id("resp", hydrated.thread, now_ms=now_ms, chance=parts.rng)
        seal = None
        if ask.wants_encrypted:
            seal = sealer(parts.vault, tenant=access.tenant, model=selected.model)
        teller = ResponseTeller(
            hydrated.ask,
            response_id=response_id,
            thread=hydrated.thread,
            created_s=now_ms // 1000,
            now_ms=now_ms,
            chance=parts.rng,
            seal=seal,
            reasoning_events=parts.options.reasoning_events,
        )
        return ResponseRun(
            id=response_id,
            access=access,
            hydrated=hydrated,
            teller=teller,
            generation=parts.generations.start(DIALECT, wish, context),
            wish=wish,
            keeper=parts.keeper,
            clock=parts.clock,
            created_us=now_ms * 1000,
            kept_us=parts.options.responses_kept_s * 1_000_000,
            known=selected.known,
            used=selected.used,
            stores=ask.store,
            why_cut=why_cut,
            live=self._live,
        )

    async def select(self, ask: ResponseAsk, context: RequestContext, access: Access) -> Selected:
        """Return a request with as much of its history as it wants, or as fits."""
        hydrated = await self._hydrator.load(ask, access)
        blobs = sealed(hydrated.items)
        model = ask.model
        measure: Measure | None = None
        if blobs or ask.wants_encrypted or (ask.truncation == "auto" and hydrated.history):
            measure = await self._parts.measures.of(ask.model, deadline_s=context.deadline_s)
            model = measure.name
        texts = opened(self._parts.vault, blobs, tenant=access.tenant, model=model)
        items: Sequence[ItemDoc] = hydrated.items
        if measure is not None and ask.truncation == "auto" and hydrated.history:
            items = await _fitted(hydrated, measure, texts)
        wish = wish_of(hydrated.ask, items, opened=texts)
        return Selected(hydrated, wish, len(hydrated.items), len(items), model)

    async def count(self, ask: ResponseAsk, context: RequestContext, access: Access) -> int:
        """Return how many tokens the prompt of this request has; nothing is sent anywhere."""
        selected = await self.select(replace(ask, store=False), context, access)
        measure = await self._parts.measures.of(ask.model, deadline_s=context.deadline_s)
        return await measure.count(selected.wish.prompts[0])

    # ── Shown again ──────────────────────────────────────────────────────────

    async def retrieve(self, access: Access, response_id: str) -> bytes:
        """Return the object of a response as it is now; NOT_FOUND."""
        live = self._live.get((access.tenant, response_id))
        if live is not None:
            return live.teller.response()
        return (await self._record(access, response_id)).response

    async def input_items(
        self, access: Access, response_id: str, page: PageAsk
    ) -> tuple[Sequence[bytes], bool]:
        """Return documents of a response's own input, and whether there are more; NOT_FOUND."""
        live = self._live.get((access.tenant, response_id))
        if live is not None:
            return _page(live.hydrated.ask.items, page)
        record = await self._record(access, response_id)
        try:
            items = items_of(record.input)
        except ValueError as error:
            raise corrupt(f"input of response {response_id}") from error
        return _page(items, page)

    async def delete(self, access: Access, response_id: str) -> None:
        """Forget a response, also one that is still under way; NOT_FOUND."""
        live = self._live.pop((access.tenant, response_id), None)
        if live is not None:
            live.stores = False
        with asking_store():
            there = is_id(response_id) and await self._parts.keeper.store.delete_response(
                access, response_id
            )
        if not there and live is None:
            raise response_not_found(response_id)

    async def cancel(self, access: Access, response_id: str) -> bytes:
        """Return the object of a background response that is over; INVALID_REQUEST for one nobody can cancel."""
        if (access.tenant, response_id) in self._live:
            raise _foreground(response_id)
        record = await self._record(access, response_id)
        if not record.background:
            raise _foreground(response_id)
        return record.response

    async def _record(self, access: Access, response_id: str) -> StoredResponse:
        if not is_id(response_id):
            raise response_not_found(response_id)
        with asking_store():
            record = await self._parts.keeper.store.get_response(access, response_id)
        if record is None:
            raise response_not_found(response_id)
        return record


_UNSUPPORTED: Final = "unsupported_value"


async def _fitted(hydrated: Hydrated, measure: Measure, texts: dict[str, str]) -> Sequence[ItemDoc]:
    """Return the newest items that leave room for the answer."""
    items, ask = hydrated.items, hydrated.ask
    if measure.context is None:
        return items
    budget = budget_of(measure.context, ask.sampling.max_tokens)
    layout = layout_of(items, new_from=hydrated.new_from)
    sizes = [len(item.document) for item in items]
    groups = [layout.stay, *layout.may_go]
    search = Search([sum(sizes[place] for place in group) for group in groups], budget)
    while (count := search.wanted) is not None:
        chosen = [items[place] for place in layout.places(count)]
        prompt = wish_of(ask, chosen, opened=texts).prompts[0]
        search.measured(count, await measure.count(prompt))
    if search.best is None:
        raise too_long(search.shortest or 0, budget, measure.context)
    return [items[place] for place in layout.places(search.best)]


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


def _foreground(response_id: str) -> SmgError:
    return invalid(
        f"{quoted(response_id)} was not made in the background; only such a response can be cancelled",
        None,
        "cannot_cancel",
    )
