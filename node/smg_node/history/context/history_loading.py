"""History loading: reads a chain or conversation in one store call and resolves item references.

    chain of responses, or newest items of a conversation  →  items, oldest first
    references  →  the items they stand for
    new items   →  ids of the thread they belong to

Every error of a history is found here, before anything is sent to a worker. A history is never
truncated silently: one that is longer than what is read of it is refused, unless the request asks
for truncation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from msgspec import structs

from smg_node.core.cooperative_steps import Steps
from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_node.core.ports import Clock, Rng
from smg_node.dialects.responses.items.item_document import (
    ItemDoc,
    assign_ids,
    item_of,
    items_in_steps,
)
from smg_node.dialects.responses.items.item_groups import groups_of, unmatched
from smg_node.dialects.responses.items.item_types import (
    ADDITIONAL_TOOLS,
    APPROVAL_REQUEST,
    CALL_OUTPUTS,
    ITEM_REFERENCE,
)
from smg_node.dialects.responses.request.reader import conversation_not_found
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.dialects.responses.request.tools import history_tools
from smg_node.history.context.paced_steps import paced
from smg_node.history.errors import asking_store, corrupt, previous_not_found
from smg_node.history.ports import STATE_ITEM, HistoryOptions, Keeper, SharedThreads, Threads
from smg_storage.ids import made_ms
from smg_storage.records import Access, Item, StoredResponse


class _Output(msgspec.Struct):
    output: msgspec.Raw = msgspec.Raw(b"[]")


_output: Final = msgspec.json.Decoder(_Output).decode
_SCAN_RATIO: Final = 4
"""Finding the output in a response is so many times as quick as making turns of it."""


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """A request with its history. `ask` has its own input resolved and named; `history` comes before it, oldest first.

    `complete` is false where the history is longer than what was read. `depth` is how many responses this one continues.
    """

    ask: ResponseRequest
    history: tuple[ItemDoc, ...]
    thread: str
    depth: int = 0
    complete: bool = True
    referred: frozenset[str] = frozenset()
    """Ids of the input that stand for items that were there before."""

    @property
    def items(self) -> tuple[ItemDoc, ...]:
        """History and own input, oldest first."""
        return (*self.history, *self.ask.items)

    @property
    def new_from(self) -> int:
        """Index in `items` at which the request's own input begins."""
        return len(self.history)


@dataclass(frozen=True, slots=True)
class _Past:
    """Items that precede a request."""

    items: tuple[ItemDoc, ...] = ()
    depth: int = 0
    complete: bool = True


def _with_history(ask: ResponseRequest, history: Sequence[ItemDoc]) -> ResponseRequest:
    """Return the request with the tools that its history, or an item it refers to, declares."""
    declares = [item for item in (*history, *ask.items) if item.type == ADDITIONAL_TOOLS]
    return history_tools(ask, declares) if declares else ask


def _in_thread(ask: ResponseRequest, thread: str) -> ResponseRequest:
    """Return the request with what its servers of tools know its conversation by; nothing for one that stands alone.

    One that is stored gets the gate that its runs have to pass.
    """
    serving = ask.serving
    if serving is None or not (ask.store or ask.previous_response_id or ask.conversation_id):
        return ask
    from smg_node.history.context.logged_calls import LoggedCalls

    servers = tuple(structs.replace(server, thread=thread) for server in serving.servers)
    gate = LoggedCalls() if ask.store else None
    return replace(ask, serving=structs.replace(serving, servers=servers, gate=gate))


class HistoryLoader:
    """Loads the history that a request continues, and resolves its references."""

    def __init__(
        self,
        keeper: Keeper,
        *,
        clock: Clock,
        rng: Rng,
        options: HistoryOptions,
        threads: Threads | None = None,
    ) -> None:
        self.threads: Threads = SharedThreads(rng) if threads is None else threads
        self._keeper = keeper
        self._clock = clock
        self._rng = rng
        self._options = options

    def thread(self, ask: ResponseRequest) -> str:
        """Return the thread to which the request's response belongs."""
        return self.threads.thread(ask.previous_response_id or ask.conversation_id)

    async def load(
        self, ask: ResponseRequest, access: Access, *, thread: str = ""
    ) -> LoadedHistory:
        """Return the request with all that it continues, in this `thread` if that is known already.

        INVALID_REQUEST `previous_response_not_found`, `history_too_long`, `item_not_found`, or for
        tool calls without their outputs; NOT_FOUND `conversation_not_found`; OVERLOADED
        `store_unavailable`.
        """
        with asking_store():
            past = await self._past(ask, access)
            thread = thread or self.thread(ask)
            items = await self.named(ask.items, access, thread=thread, kept=ask.store)
        history = _usable(past, self._options.items_max)
        complete = past.complete and len(past.items) <= self._options.items_max
        if not complete and ask.truncation == "disabled":
            raise _too_long(self._options)
        hydrated = LoadedHistory(
            ask=_with_history(
                replace(_in_thread(ask, thread), items=items, references=()), history
            ),
            history=history,
            thread=thread,
            depth=past.depth,
            complete=complete,
            referred=frozenset(ask.references) | _sent_back(ask.items, items),
        )
        await paced(_check_calls(hydrated.items))
        return hydrated

    async def named(
        self,
        items: Sequence[ItemDoc],
        access: Access,
        *,
        thread: str,
        kept: bool = True,
        same_stay: bool = False,
        where: str = "input",
    ) -> tuple[ItemDoc, ...]:
        """Return items with references resolved and ids assigned; StoreError from the store.

        A client's own id is looked up only where it is going to be `kept`; an id already in use is
        replaced, except, with `same_stay`, when the identical item has it. `where` is the place of
        the items in the request.
        """
        references = [item.id for item in items if item.type == ITEM_REFERENCE]
        own = [item.id for item in items if item.id and item.type != ITEM_REFERENCE]
        asked = dict.fromkeys([*references, *(own if kept else ())])
        found: Mapping[str, Item] = {}
        if asked:
            beside = structs.replace(access, thread=thread)
            found = await self._keeper.store.find_items(beside, list(asked))
        known = {item.id for item in items if item.id in found and _is_reference(item, found)}
        resolved = [
            _resolved(item, f"{where}[{place}].id", found) for place, item in enumerate(items)
        ]
        taken = {
            item.id
            for item in resolved
            if item.id in found and not (same_stay and found[item.id].document == item.document)
        } - known
        return assign_ids(
            resolved, thread=thread, now_ms=self._clock.now_ms(), chance=self._rng, taken=taken
        )

    async def _past(self, ask: ResponseRequest, access: Access) -> _Past:
        options, store = self._options, self._keeper.store
        if ask.previous_response_id:
            chain = await store.get_response_chain(
                access,
                ask.previous_response_id,
                items_max=options.items_max,
                bytes_max=options.bytes_max,
            )
            if chain.missing or not chain.responses:
                raise previous_not_found(chain.missing or ask.previous_response_id)
            return await paced(_of_chain(chain.responses, complete=chain.complete))
        if ask.conversation_id:
            page = await store.newest_items(
                access,
                ask.conversation_id,
                items_max=options.items_max,
                bytes_max=options.bytes_max,
            )
            if page is None:
                raise conversation_not_found(ask.conversation_id)
            if page.positions and page.positions[0] >= options.conversation_items_max:
                raise conversation_full(options.conversation_items_max)
            items = await paced(_of_conversation(page.items))
            return _Past(items, complete=not page.has_more)
        return _Past()


def _of_chain(newest_first: Sequence[StoredResponse], *, complete: bool) -> Steps[_Past]:
    """Return the items of a chain, of each response its input and then its output, in steps."""
    latest = newest_first[0]
    if not latest.status.is_final:
        raise invalid(
            f"the response {quoted(latest.id)} is still {latest.status.value}",
            "previous_response_id",
        )
    items: list[ItemDoc] = []
    for record in reversed(newest_first):
        try:
            items.extend((yield from items_in_steps(record.input)))
            yield len(record.response) // _SCAN_RATIO
            output = bytes(_output(record.response).output)
            items.extend((yield from items_in_steps(output)))
        except (ValueError, msgspec.DecodeError) as error:
            raise corrupt(f"response {record.id}") from error
    return _Past(tuple(items), latest.depth + 1, complete)


def _of_conversation(newest_first: Sequence[Item]) -> Steps[tuple[ItemDoc, ...]]:
    """Return the items of a conversation, the oldest first, in steps."""
    items: list[ItemDoc] = []
    for row in reversed(newest_first):
        items.append(_stored(row.document, row.id))
        yield items[-1].weight
    return tuple(items)


def _stored(document: bytes, item_id: str) -> ItemDoc:
    try:
        return item_of(document)
    except ValueError as error:
        raise corrupt(f"item {item_id}") from error


def _usable(past: _Past, items_max: int) -> tuple[ItemDoc, ...]:
    """Return the part of the history that can be shown to a model: the newest items, and no tool
    call that was cut off.

    A cut may go through a turn. The rest of that turn, with outputs whose calls are gone, is left
    out too.
    """
    items = past.items[-items_max:] if items_max else ()
    if not past.complete or len(items) < len(past.items):
        groups = groups_of(items)
        torn = next((group for group in groups if not group.pinned), None)
        if torn is not None and not _is_question(items[torn.places[0]]):
            gone = frozenset(torn.places)
            items = tuple(item for place, item in enumerate(items) if place not in gone)
    return tuple(
        item for item in items if not (item.type in CALL_OUTPUTS and item.status == "incomplete")
    )


def _is_question(item: ItemDoc) -> bool:
    return item.type == "message" and item.role == "user"


def _sent_back(sent: Sequence[ItemDoc], items: Sequence[ItemDoc]) -> frozenset[str]:
    """Return the ids of requests for approval among the items `sent` in whose place stored ones stand now."""
    pairs = zip(sent, items, strict=True)
    return frozenset(
        item.id
        for old, item in pairs
        if old.type == APPROVAL_REQUEST and item.id == old.id and item is not old
    )


def _is_reference(item: ItemDoc, found: Mapping[str, Item]) -> bool:
    """Whether an item stands for one that is stored: a request for approval of ours that is sent back does, whatever it says."""
    if item.type == ITEM_REFERENCE:
        return True
    stored = found.get(item.id)
    own = item.type == APPROVAL_REQUEST and made_ms(item.id) is not None
    return own and stored is not None and stored.item_type == item.type


def _resolved(item: ItemDoc, where: str, found: Mapping[str, Item]) -> ItemDoc:
    if not _is_reference(item, found):
        return item
    record = found.get(item.id)
    if record is None or record.item_type == STATE_ITEM:
        raise invalid(f"there is no item {quoted(item.id)}", where, "item_not_found")
    return _stored(record.document, record.id)


def _check_calls(items: Sequence[ItemDoc]) -> Steps[None]:
    found = yield from unmatched(items)
    if found.orphans:
        raise invalid(f"no tool call found for call_id {quoted(found.orphans[0])}", "input")
    if found.unanswered:
        raise invalid(f"no tool output found for call_id {quoted(found.unanswered[0])}", "input")


def _too_long(options: HistoryOptions) -> SmgError:
    return invalid(
        f"the history has more than {options.items_max} items or {options.bytes_max} bytes; with truncation"
        " 'auto' its oldest part is left out",
        "previous_response_id",
        "history_too_long",
    )


def conversation_full(items_max: int) -> SmgError:
    """Return the error for a conversation that has reached its maximum number of items."""
    return invalid(
        f"the conversation has {items_max} items, as many as there may be; begin a new one",
        "conversation",
        "conversation_too_long",
    )
