"""Conversation service: creates, updates, lists and deletes conversations and their items."""

from collections.abc import Sequence

from msgspec.structs import replace

from smg_node.dialects.responses.events.list_bodies import conversation_body, unknown_cursor
from smg_node.dialects.responses.items.item_document import ItemDoc, length_of
from smg_node.dialects.responses.request.reader import conversation_not_found
from smg_node.history.context.history_loading import HistoryLoader, conversation_full
from smg_node.history.errors import asking_store, failure_of, item_not_found
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.turns.turn_record import over_us, row_of
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import is_id, new_id, thread_of
from smg_storage.records import Access, Conversation, ItemPage, PageAsk

_NEWEST = PageAsk(limit=1)


class ConversationService:
    """Serves `/v1/conversations`. NOT_FOUND `conversation_not_found` for an unknown one."""

    def __init__(self, parts: HistoryParts) -> None:
        self._store = parts.keeper.store
        self._clock = parts.clock
        self._rng = parts.rng
        self._options = parts.options
        self._quotas = parts.quotas
        self._hydrator = HistoryLoader(
            parts.keeper,
            clock=parts.clock,
            rng=parts.rng,
            options=parts.options,
            threads=parts.threads,
        )
        self._threads = self._hydrator.threads

    async def create(self, access: Access, items: Sequence[ItemDoc], metadata: bytes) -> bytes:
        """Store a new conversation with its first items; return its object."""
        now_ms, thread = self._clock.now_ms(), self._threads.thread()
        conversation_id = new_id("conv", thread, now_ms=now_ms, chance=self._rng)
        now_us = now_ms * 1000
        over_us = self._over_us(now_us)
        record = Conversation(conversation_id, now_us, now_us, metadata, expires_us=over_us)
        await self._quotas.conversation(access, length_of(items))
        with asking_store():
            named = await self._hydrator.named(
                items, access, thread=thread, same_stay=True, where="items"
            )
            made = await self._store.create_conversation(access, record)
            if named:
                rows = [row_of(item, now_us) for item in named]
                await self._store.append_items(
                    access, conversation_id, rows, now_us=now_us, expires_us=over_us
                )
        return _object(made)

    async def retrieve(self, access: Access, conversation_id: str) -> bytes:
        """Return the object of a conversation."""
        _check(conversation_id)
        with asking_store():
            record = await self._store.get_conversation(access, conversation_id)
        if record is None:
            raise conversation_not_found(conversation_id)
        return _object(record)

    async def update(self, access: Access, conversation_id: str, metadata: bytes) -> bytes:
        """Replace a conversation's metadata; return its object."""
        _check(conversation_id)
        with asking_store():
            record = await self._store.update_conversation(
                access, conversation_id, metadata, now_us=self._clock.now_ms() * 1000
            )
        if record is None:
            raise conversation_not_found(conversation_id)
        return _object(record)

    async def delete(self, access: Access, conversation_id: str) -> None:
        """Delete a conversation; responses that were made in it stay."""
        _check(conversation_id)
        with asking_store():
            there = await self._store.delete_conversation(access, conversation_id)
        if not there:
            raise conversation_not_found(conversation_id)

    # ── Items ────────────────────────────────────────────────────────────────

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> tuple[Sequence[bytes], bool]:
        """Return documents of a part of a conversation, and whether there are more."""
        found = await self._page(access, conversation_id, page)
        return [item.document for item in found.items], found.has_more

    async def add_items(
        self, access: Access, conversation_id: str, items: Sequence[ItemDoc]
    ) -> Sequence[bytes]:
        """Append items, and return their documents in order; what is linked already stays where it is."""
        newest = await self._page(access, conversation_id, _NEWEST)
        most = self._options.conversation_items_max
        if newest.positions and newest.positions[0] + len(items) > most:
            raise conversation_full(most)
        await self._quotas.items(access, length_of(items))
        thread, now_us = self._threads.thread(conversation_id), self._clock.now_ms() * 1000
        try:
            named = await self._hydrator.named(
                items, access, thread=thread, same_stay=True, where="items"
            )
            rows = [row_of(item, now_us) for item in named]
            await self._store.append_items(
                access,
                conversation_id,
                rows,
                now_us=now_us,
                expires_us=self._over_us(now_us),
            )
        except StoreError as error:
            if error.kind is StoreErrorKind.BAD_REFERENCE:
                raise conversation_not_found(conversation_id) from error
            raise failure_of(error) from error
        return [item.document for item in named]

    async def get_item(self, access: Access, conversation_id: str, item_id: str) -> bytes:
        """Return the document of an item of this conversation; NOT_FOUND."""
        _check(conversation_id)
        item = None
        with asking_store():
            if is_id(item_id) and await self._store.is_item_linked(
                access, conversation_id, item_id
            ):
                beside = replace(access, thread=thread_of(conversation_id))
                item = await self._store.get_item(beside, item_id)
            if item is None and await self._store.get_conversation(access, conversation_id) is None:
                raise conversation_not_found(conversation_id)
        if item is None:
            raise item_not_found(item_id)
        return item.document

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bytes:
        """Unlink an item from a conversation; return the conversation's object."""
        conversation = await self.retrieve(access, conversation_id)
        with asking_store():
            there = is_id(item_id) and await self._store.delete_item(
                access, conversation_id, item_id
            )
        if not there:
            raise item_not_found(item_id)
        return conversation

    def _over_us(self, now_us: int) -> int:
        """Return until when a conversation is kept to which something is appended now."""
        return over_us(now_us, self._options.conversations_kept_s * 1_000_000)

    async def _page(self, access: Access, conversation_id: str, page: PageAsk) -> ItemPage:
        _check(conversation_id)
        try:
            found = await self._store.list_items(access, conversation_id, page)
        except StoreError as error:
            if error.kind is StoreErrorKind.BAD_REFERENCE:
                raise unknown_cursor(page.after) from error
            raise failure_of(error) from error
        if found is None:
            raise conversation_not_found(conversation_id)
        return found


def _check(conversation_id: str) -> None:
    if not is_id(conversation_id):
        raise conversation_not_found(conversation_id)


def _object(record: Conversation) -> bytes:
    return conversation_body(
        record.id, created_s=record.created_us // 1_000_000, metadata=record.metadata
    )
