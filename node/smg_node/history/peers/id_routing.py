"""Routing by id: store operations on one thread go to the store of the node that holds it.

`at` finds that store from the id; everything else is as in the protocol of stores.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from smg_storage.records import (
    EVENTS_BYTES_MAX,
    NEVER_US,
    Access,
    Chain,
    Conversation,
    EventBlob,
    Item,
    ItemPage,
    Lease,
    PageAsk,
    Patch,
    Status,
    StoredResponse,
)
from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import StoreWrapper


class Homes(StoreWrapper, ABC):
    """Finds the store of an id; `inner` is this node's own store."""

    @abstractmethod
    def at(self, any_id: str) -> HistoryStore:
        """Return the store of the node that holds this id."""


class ConversationsById(Homes):
    """Operations on conversations and their links."""

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """See `HistoryStore`."""
        return await self.at(record.id).create_conversation(access, record)

    async def get_conversation(self, access: Access, conversation_id: str) -> Conversation | None:
        """See `HistoryStore`."""
        return await self.at(conversation_id).get_conversation(access, conversation_id)

    async def update_conversation(
        self,
        access: Access,
        conversation_id: str,
        metadata: bytes,
        *,
        now_us: int,
        if_version: int | None = None,
    ) -> Conversation | None:
        """See `HistoryStore`."""
        return await self.at(conversation_id).update_conversation(
            access, conversation_id, metadata, now_us=now_us, if_version=if_version
        )

    async def delete_conversation(self, access: Access, conversation_id: str) -> bool:
        """See `HistoryStore`."""
        return await self.at(conversation_id).delete_conversation(access, conversation_id)

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """See `HistoryStore`. Items that another node holds cannot be linked."""
        return await self.at(conversation_id).link_items(
            access, conversation_id, item_ids, now_us=now_us, expires_us=expires_us
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
        """See `HistoryStore`."""
        return await self.at(conversation_id).append_items(
            access, conversation_id, records, now_us=now_us, expires_us=expires_us
        )

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> ItemPage | None:
        """See `HistoryStore`."""
        return await self.at(conversation_id).list_items(access, conversation_id, page)

    async def newest_items(
        self, access: Access, conversation_id: str, *, items_max: int, bytes_max: int
    ) -> ItemPage | None:
        """See `HistoryStore`."""
        return await self.at(conversation_id).newest_items(
            access, conversation_id, items_max=items_max, bytes_max=bytes_max
        )

    async def is_item_linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """See `HistoryStore`."""
        return await self.at(conversation_id).is_item_linked(access, conversation_id, item_id)

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """See `HistoryStore`."""
        return await self.at(conversation_id).delete_item(access, conversation_id, item_id)


class ResponsesById(Homes):
    """Operations on responses, their leases and their event logs."""

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """See `HistoryStore`."""
        return await self.at(record.id).store_response(access, record)

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """See `HistoryStore`."""
        return await self.at(response_id).get_response(access, response_id)

    async def patch_response(
        self,
        access: Access,
        response_id: str,
        patch: Patch,
        *,
        from_statuses: Sequence[Status],
        token: int = 0,
    ) -> StoredResponse | None:
        """See `HistoryStore`."""
        return await self.at(response_id).patch_response(
            access, response_id, patch, from_statuses=from_statuses, token=token
        )

    async def delete_response(self, access: Access, response_id: str) -> bool:
        """See `HistoryStore`."""
        return await self.at(response_id).delete_response(access, response_id)

    async def get_response_chain(
        self, access: Access, response_id: str, *, items_max: int, bytes_max: int
    ) -> Chain:
        """See `HistoryStore`. All of a chain is of one thread."""
        return await self.at(response_id).get_response_chain(
            access, response_id, items_max=items_max, bytes_max=bytes_max
        )

    async def claim_run(
        self, access: Access, response_id: str, owner: str, *, now_us: int, until_us: int
    ) -> Lease | None:
        """See `HistoryStore`."""
        return await self.at(response_id).claim_run(
            access, response_id, owner, now_us=now_us, until_us=until_us
        )

    async def renew_run(self, access: Access, lease: Lease, *, until_us: int) -> Lease:
        """See `HistoryStore`."""
        return await self.at(lease.response_id).renew_run(access, lease, until_us=until_us)

    async def release_run(self, access: Access, lease: Lease) -> None:
        """See `HistoryStore`."""
        await self.at(lease.response_id).release_run(access, lease)

    async def request_cancel(self, access: Access, response_id: str) -> StoredResponse | None:
        """See `HistoryStore`."""
        return await self.at(response_id).request_cancel(access, response_id)

    async def append_events(
        self,
        access: Access,
        response_id: str,
        blobs: Sequence[EventBlob],
        *,
        expires_us: int,
        token: int = 0,
    ) -> None:
        """See `HistoryStore`."""
        await self.at(response_id).append_events(
            access, response_id, blobs, expires_us=expires_us, token=token
        )

    async def read_events(
        self,
        access: Access,
        response_id: str,
        *,
        after: int,
        limit: int,
        bytes_max: int = EVENTS_BYTES_MAX,
    ) -> Sequence[EventBlob]:
        """See `HistoryStore`."""
        return await self.at(response_id).read_events(
            access, response_id, after=after, limit=limit, bytes_max=bytes_max
        )
