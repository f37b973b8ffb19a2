"""Conversations in memory, with their items: created, linked, listed, and deleted.

No method awaits anything, so each is one step for all others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from smg_storage.located_item import located_item
from smg_storage.memory.row_store import RowStore, home_of
from smg_storage.memory.rows import ConversationRow, ItemRow, Key, Kind, ResponseRow
from smg_storage.memory.write_equality import (
    bad_reference,
    conflict,
    cost,
    same_conversation,
    same_item,
)
from smg_storage.records import (
    NEVER_US,
    Access,
    Conversation,
    Item,
    ItemPage,
    PageAsk,
    later_end,
)
from smg_storage.text_limits import check_item


class MemoryConversations:
    """Conversations and items of a store in memory."""

    def __init__(self, shelf: RowStore, now_us: Callable[[], int]) -> None:
        self._shelf = shelf
        self._now_us = now_us

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """Keep a new conversation; one that is there and the same is answered as it is."""
        now_us = self._begin()
        key = access.tenant, record.id
        row = self._conversation(key, now_us)
        if row is not None:
            if not same_conversation(row.record, record):
                raise conflict("conversation", record.id)
            return row.record
        size = cost(record.metadata)
        self._shelf.make_room(now_us, [home_of(key)], bytes_more=size)
        self._shelf.forget(Kind.CONVERSATION, key)
        made = ConversationRow(home_of(key), size, record.expires_us, record)
        self._shelf.add(Kind.CONVERSATION, key, made)
        return record

    async def get_conversation(self, access: Access, conversation_id: str) -> Conversation | None:
        """Return a conversation."""
        row = self._conversation((access.tenant, conversation_id), self._begin())
        return row.record if row is not None else None

    async def update_conversation(
        self,
        access: Access,
        conversation_id: str,
        metadata: bytes,
        *,
        now_us: int,
        if_version: int | None = None,
    ) -> Conversation | None:
        """Give it other metadata, if its version is that one; None if there is no such conversation."""
        row = self._conversation((access.tenant, conversation_id), self._begin())
        if row is None or row.record.metadata == metadata:
            return row.record if row is not None else None
        if if_version is not None and if_version != row.record.version:
            raise conflict("conversation", conversation_id)
        more = cost(metadata) - cost(row.record.metadata)
        self._shelf.make_room(self._now_us(), [row.thread], bytes_more=more)
        self._shelf.weigh(row, more)
        row.record = msgspec.structs.replace(
            row.record, metadata=metadata, updated_us=now_us, version=row.record.version + 1
        )
        return row.record

    async def delete_conversation(self, access: Access, conversation_id: str) -> bool:
        """Forget it with its links, and with items that nothing refers to then; return whether it was there."""
        key = access.tenant, conversation_id
        if self._conversation(key, self._begin()) is None:
            return False
        self._shelf.forget(Kind.CONVERSATION, key)
        return True

    async def create_item(self, access: Access, record: Item) -> Item:
        """Keep an item that is not linked yet."""
        now_us = self._begin()
        row = self._item((access.tenant, record.id), now_us)
        if row is None:
            self._make_room_for(
                access.tenant, now_us, [record], [home_of((access.tenant, record.id))]
            )
            self._keep_item(access.tenant, record, home_of((access.tenant, record.id)))
            return record
        if not same_item(row.record, record):
            raise conflict("item", record.id)
        return row.record

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Append items in this order, all or none, and return their positions; what is linked stays where it is."""
        return self._append(
            access.tenant, conversation_id, (), item_ids, changed_us=now_us, ends_us=expires_us
        )

    async def append_items(
        self,
        access: Access,
        conversation_id: str,
        records: Sequence[Item],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Keep new items and append them, in one step."""
        links = [record.id for record in records]
        return self._append(
            access.tenant, conversation_id, records, links, changed_us=now_us, ends_us=expires_us
        )

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> ItemPage | None:
        """Return a part of a conversation; None if there is no such conversation."""
        now_us = self._begin()
        row = self._conversation((access.tenant, conversation_id), now_us)
        if row is None:
            return None
        after = row.position_of.get(page.after)
        if page.after and after is None:
            raise bad_reference("item", page.after)
        entries = row.positions.descending if page.newest_first else row.positions.ascending
        found: list[tuple[Item, int]] = []
        for item, position in self._alive(access.tenant, row, entries(after), now_us):
            if len(found) == page.limit:
                return _page(found, has_more=True)
            found.append((item, position))
        return _page(found, has_more=False)

    async def newest_items(
        self, access: Access, conversation_id: str, *, items_max: int, bytes_max: int
    ) -> ItemPage | None:
        """Return the newest items, the newest first, up to a number of them and of their bytes; at least one."""
        now_us = self._begin()
        row = self._conversation((access.tenant, conversation_id), now_us)
        if row is None:
            return None
        found: list[tuple[Item, int]] = []
        length = 0
        for item, position in self._alive(access.tenant, row, row.positions.descending(), now_us):
            length += len(item.document)
            if found and (len(found) >= items_max or length > bytes_max):
                return _page(found, has_more=True)
            found.append((item, position))
        return _page(found, has_more=False)

    async def get_item(self, access: Access, item_id: str) -> Item | None:
        """Return an item of a conversation, or of a response that was kept with its locations."""
        return self._find(access.tenant, item_id, self._begin())

    async def find_items(self, access: Access, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return those that are there, by id."""
        now_us = self._begin()
        found = {item_id: self._find(access.tenant, item_id, now_us) for item_id in item_ids}
        return {item_id: item for item_id, item in found.items() if item is not None}

    async def is_item_linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Return whether an item is in a conversation."""
        row = self._conversation((access.tenant, conversation_id), self._begin())
        return row is not None and item_id in row.position_of

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Take an item out of a conversation, and forget it if it is in no other; return whether it was there."""
        key = access.tenant, conversation_id
        if self._conversation(key, self._begin()) is None:
            return False
        return self._shelf.unlink(key, item_id)

    # ── For turns too ────────────────────────────────────────────────────────

    def _begin(self) -> int:
        """Forget what is too old, and return what time it is."""
        now_us = self._now_us()
        self._shelf.let_go(now_us)
        return now_us

    def _conversation(self, key: Key, now_us: int) -> ConversationRow | None:
        row = self._shelf.conversations.get(key)
        return row if row is not None and not _is_over(row.expires_us, now_us) else None

    def _item(self, key: Key, now_us: int) -> ItemRow | None:
        row = self._shelf.items.get(key)
        return row if row is not None and not _is_over(row.expires_us, now_us) else None

    def _response(self, key: Key, now_us: int) -> ResponseRow | None:
        row = self._shelf.responses.get(key)
        return row if row is not None and not _is_over(row.expires_us, now_us) else None

    def _check_items(
        self, tenant: str, records: Sequence[Item], links: Sequence[str], now_us: int
    ) -> list[Item]:
        """Return the items that are new; CONFLICT or BAD_REFERENCE if they cannot be appended as they are."""
        new: dict[str, Item] = {}
        for record in records:
            row = self._item((tenant, record.id), now_us)
            known = row.record if row is not None else new.setdefault(record.id, record)
            if not same_item(known, record):
                raise conflict("item", record.id)
        for item_id in links:
            if item_id not in new and self._item((tenant, item_id), now_us) is None:
                raise bad_reference("item", item_id)
        return list(new.values())

    def _make_room_for(
        self,
        tenant: str,
        now_us: int,
        new: Sequence[Item],
        threads: Sequence[Key],
        *,
        links: Sequence[str] = (),
        bytes_more: int = 0,
        items_more: int = 0,
        responses_more: int = 0,
    ) -> None:
        """Make room for new items, if they can be kept, and for more; what is linked stays, in whichever thread it is."""
        for record in new:
            check_item(record)
        rows = [self._shelf.items.get((tenant, item_id)) for item_id in links]
        self._shelf.make_room(
            now_us,
            [*threads, *(row.thread for row in rows if row is not None)],
            bytes_more=bytes_more + sum(cost(record.document) for record in new),
            items_more=items_more + len(new),
            responses_more=responses_more,
        )

    def _keep_item(self, tenant: str, record: Item, thread: Key) -> None:
        key = tenant, record.id
        self._shelf.forget(Kind.ITEM, key)
        row = ItemRow(thread, cost(record.document), record.expires_us, record)
        self._shelf.add(Kind.ITEM, key, row)

    def _append(
        self,
        tenant: str,
        conversation_id: str,
        records: Sequence[Item],
        links: Sequence[str],
        *,
        changed_us: int,
        ends_us: int,
    ) -> list[int]:
        now_us = self._begin()
        row = self._conversation((tenant, conversation_id), now_us)
        if row is None:
            raise bad_reference("conversation", conversation_id)
        new = self._check_items(tenant, records, links, now_us)
        self._make_room_for(tenant, now_us, new, [row.thread], links=links)
        for record in new:
            self._keep_item(tenant, record, row.thread)
        return self._link(tenant, row, links, changed_us=changed_us, ends_us=ends_us)

    def _link(
        self,
        tenant: str,
        row: ConversationRow,
        links: Sequence[str],
        *,
        changed_us: int,
        ends_us: int,
    ) -> list[int]:
        """Append items that are there, and return where they all are."""
        before = row.next_position
        for item_id in links:
            if item_id not in row.position_of:
                row.position_of[item_id] = row.next_position
                row.item_at[row.next_position] = item_id
                row.positions.add(row.next_position)
                row.next_position += 1
                self._shelf.items[tenant, item_id].conversations[row.record.id] = None
                self._shelf.move_item((tenant, item_id), row.thread)
        if (linked := row.next_position - before) > 0:
            row.record = msgspec.structs.replace(
                row.record,
                updated_us=changed_us,
                version=row.record.version + linked,
                expires_us=later_end(row.expires_us, ends_us),
            )
            self._shelf.end_at(Kind.CONVERSATION, (tenant, row.record.id), row.record.expires_us)
        return [row.position_of[item_id] for item_id in links]

    def _alive(
        self, tenant: str, row: ConversationRow, positions: Iterator[int], now_us: int
    ) -> Iterator[tuple[Item, int]]:
        for position in positions:
            item = self._item((tenant, row.item_at[position]), now_us)
            if item is not None:
                yield item.record, position

    def _find(self, tenant: str, item_id: str, now_us: int) -> Item | None:
        row = self._item((tenant, item_id), now_us)
        if row is not None:
            return row.record
        location = self._shelf.locations.get((tenant, item_id))
        if location is None:
            return None
        response = self._response((tenant, location.record.response_id), now_us)
        return located_item(response.record, location.record) if response is not None else None


def _is_over(expires_us: int, now_us: int) -> bool:
    return expires_us != NEVER_US and expires_us <= now_us


def _page(found: Sequence[tuple[Item, int]], *, has_more: bool) -> ItemPage:
    return ItemPage([item for item, _ in found], [place for _, place in found], has_more)
