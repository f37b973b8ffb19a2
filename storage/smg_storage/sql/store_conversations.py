"""Store part of conversations and their items, in tables."""

from collections.abc import Mapping, Sequence

from smg_storage.records import (
    NEVER_US,
    Access,
    Conversation,
    Item,
    ItemPage,
    PageAsk,
)
from smg_storage.sql.executor import Executor
from smg_storage.sql.operations import conversations
from smg_storage.sql.operations.turn_plan import Growth


class SqlConversations:
    """Conversations and their items, in tables."""

    def __init__(self, door: Executor) -> None:
        self._door = door

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """Keep a new conversation."""
        return await self._door.write(
            access, lambda work: conversations.create_conversation(work, record)
        )

    async def get_conversation(self, access: Access, conversation_id: str) -> Conversation | None:
        """Return a conversation."""
        return await self._door.read(
            access, lambda work: conversations.get_conversation(work, conversation_id)
        )

    async def update_conversation(
        self,
        access: Access,
        conversation_id: str,
        metadata: bytes,
        *,
        now_us: int,
        if_version: int | None = None,
    ) -> Conversation | None:
        """Give it other metadata."""
        return await self._door.write(
            access,
            lambda work: conversations.update_conversation(
                work, conversation_id, metadata, now_us, if_version
            ),
        )

    async def delete_conversation(self, access: Access, conversation_id: str) -> bool:
        """Forget it with its links."""
        return await self._door.write(
            access, lambda work: conversations.delete_conversation(work, conversation_id)
        )

    async def create_item(self, access: Access, record: Item) -> Item:
        """Keep an item that is not linked yet."""
        return await self._door.write(access, lambda work: conversations.create_item(work, record))

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Append items in this order."""
        growth = Growth(conversation_id, item_ids, now_us=now_us, ends_us=expires_us)
        return await self._door.write(access, lambda work: conversations.append(work, growth))

    async def append_items(
        self,
        access: Access,
        conversation_id: str,
        records: Sequence[Item],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Keep new items and append them."""
        item_ids = [record.id for record in records]
        growth = Growth(conversation_id, item_ids, records, now_us=now_us, ends_us=expires_us)
        return await self._door.write(access, lambda work: conversations.append(work, growth))

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> ItemPage | None:
        """Return a part of a conversation."""
        return await self._door.read(
            access, lambda work: conversations.list_items(work, conversation_id, page)
        )

    async def newest_items(
        self, access: Access, conversation_id: str, *, items_max: int, bytes_max: int
    ) -> ItemPage | None:
        """Return the newest items."""
        return await self._door.read(
            access,
            lambda work: conversations.newest_items(work, conversation_id, items_max, bytes_max),
        )

    async def get_item(self, access: Access, item_id: str) -> Item | None:
        """Return an item, wherever it is."""
        return (await self.find_items(access, [item_id])).get(item_id)

    async def find_items(self, access: Access, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return those that are there, by id."""
        return await self._door.read(access, lambda work: conversations.find_items(work, item_ids))

    async def is_item_linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Return whether an item is in a conversation."""
        return await self._door.read(
            access, lambda work: conversations.is_item_linked(work, conversation_id, item_id)
        )

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Take an item out of a conversation."""
        return await self._door.write(
            access, lambda work: conversations.delete_item(work, conversation_id, item_id)
        )
