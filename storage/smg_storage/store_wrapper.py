"""Store wrapper: a store around a store: one method sees every
operation, to count, delay or refuse it.

A subclass that wants something of all operations (a breaker, a stopwatch) overrides `_through`; one
that wants something of one of them overrides that one. What is not overridden is done by the store
inside.
"""

from collections.abc import Mapping, Sequence

from smg_storage.records import (
    EVENTS_BYTES_MAX,
    NEVER_US,
    Access,
    Chain,
    Committed,
    Conversation,
    EventBlob,
    Idempotency,
    Item,
    ItemPage,
    Lease,
    PageAsk,
    Patch,
    PoolFigures,
    Reserved,
    ResponsePage,
    Status,
    StoredResponse,
    StoreFigures,
    Turn,
)
from smg_storage.store_call import Call, StoreWrapperBase, ids_of, mark_of

__all__ = ["Call", "StoreWrapper", "StoreWrapperBase", "ids_of", "mark_of"]


class ConversationsWrapper(StoreWrapperBase):
    """Conversations and their items."""

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """See `HistoryStore`."""
        return await self._through(
            Call("create_conversation", access, (record.id,)),
            lambda: self.inner.create_conversation(access, record),
        )

    async def get_conversation(self, access: Access, conversation_id: str) -> Conversation | None:
        """See `HistoryStore`."""
        return await self._through(
            Call("get_conversation", access, (conversation_id,)),
            lambda: self.inner.get_conversation(access, conversation_id),
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
        """See `HistoryStore`."""
        return await self._through(
            Call("update_conversation", access, (conversation_id,)),
            lambda: self.inner.update_conversation(
                access, conversation_id, metadata, now_us=now_us, if_version=if_version
            ),
        )

    async def delete_conversation(self, access: Access, conversation_id: str) -> bool:
        """See `HistoryStore`."""
        return await self._through(
            Call("delete_conversation", access, (conversation_id,)),
            lambda: self.inner.delete_conversation(access, conversation_id),
        )

    async def create_item(self, access: Access, record: Item) -> Item:
        """See `HistoryStore`."""
        return await self._through(
            Call("create_item", access, (record.id,)),
            lambda: self.inner.create_item(access, record),
        )

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """See `HistoryStore`."""
        return await self._through(
            Call("link_items", access, (conversation_id, *item_ids)),
            lambda: self.inner.link_items(
                access, conversation_id, item_ids, now_us=now_us, expires_us=expires_us
            ),
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
        return await self._through(
            Call("append_items", access, (conversation_id, *(record.id for record in records))),
            lambda: self.inner.append_items(
                access, conversation_id, records, now_us=now_us, expires_us=expires_us
            ),
        )

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> ItemPage | None:
        """See `HistoryStore`."""
        return await self._through(
            Call("list_items", access, (conversation_id,)),
            lambda: self.inner.list_items(access, conversation_id, page),
        )

    async def newest_items(
        self, access: Access, conversation_id: str, *, items_max: int, bytes_max: int
    ) -> ItemPage | None:
        """See `HistoryStore`."""
        return await self._through(
            Call("newest_items", access, (conversation_id,)),
            lambda: self.inner.newest_items(
                access, conversation_id, items_max=items_max, bytes_max=bytes_max
            ),
        )

    async def get_item(self, access: Access, item_id: str) -> Item | None:
        """See `HistoryStore`."""
        return await self._through(
            Call("get_item", access, (item_id,)), lambda: self.inner.get_item(access, item_id)
        )

    async def find_items(self, access: Access, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """See `HistoryStore`."""
        return await self._through(
            Call("find_items", access, tuple(item_ids)),
            lambda: self.inner.find_items(access, item_ids),
        )

    async def is_item_linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """See `HistoryStore`."""
        return await self._through(
            Call("is_item_linked", access, (conversation_id, item_id)),
            lambda: self.inner.is_item_linked(access, conversation_id, item_id),
        )

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """See `HistoryStore`."""
        return await self._through(
            Call("delete_item", access, (conversation_id, item_id)),
            lambda: self.inner.delete_item(access, conversation_id, item_id),
        )


class ResponsesWrapper(StoreWrapperBase):
    """Responses, in chains."""

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """See `HistoryStore`."""
        return await self._through(
            Call("commit_turn", access, ids_of(turn)), lambda: self.inner.commit_turn(access, turn)
        )

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """See `HistoryStore`."""
        return await self._through(
            Call("store_response", access, (record.id,)),
            lambda: self.inner.store_response(access, record),
        )

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """See `HistoryStore`."""
        return await self._through(
            Call("get_response", access, (response_id,)),
            lambda: self.inner.get_response(access, response_id),
        )

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
        return await self._through(
            Call("patch_response", access, (response_id,)),
            lambda: self.inner.patch_response(
                access, response_id, patch, from_statuses=from_statuses, token=token
            ),
        )

    async def delete_response(self, access: Access, response_id: str) -> bool:
        """See `HistoryStore`."""
        return await self._through(
            Call("delete_response", access, (response_id,)),
            lambda: self.inner.delete_response(access, response_id),
        )

    async def get_response_chain(
        self, access: Access, response_id: str, *, items_max: int, bytes_max: int
    ) -> Chain:
        """See `HistoryStore`."""
        return await self._through(
            Call("get_response_chain", access, (response_id,)),
            lambda: self.inner.get_response_chain(
                access, response_id, items_max=items_max, bytes_max=bytes_max
            ),
        )

    async def list_identifier_responses(
        self, access: Access, identifier: str, page: PageAsk
    ) -> ResponsePage:
        """See `HistoryStore`."""
        return await self._through(
            Call("list_identifier_responses", access, (), of_all=True),
            lambda: self.inner.list_identifier_responses(access, identifier, page),
        )

    async def delete_identifier_responses(self, access: Access, identifier: str) -> int:
        """See `HistoryStore`."""
        return await self._through(
            Call("delete_identifier_responses", access, (), of_all=True),
            lambda: self.inner.delete_identifier_responses(access, identifier),
        )


class RunsWrapper(StoreWrapperBase):
    """Runs of responses, their events, and keys of clients."""

    async def claim_run(
        self, access: Access, response_id: str, owner: str, *, now_us: int, until_us: int
    ) -> Lease | None:
        """See `HistoryStore`."""
        return await self._through(
            Call("claim_run", access, (response_id,)),
            lambda: self.inner.claim_run(
                access, response_id, owner, now_us=now_us, until_us=until_us
            ),
        )

    async def renew_run(self, access: Access, lease: Lease, *, until_us: int) -> Lease:
        """See `HistoryStore`."""
        return await self._through(
            Call("renew_run", access, (lease.response_id,)),
            lambda: self.inner.renew_run(access, lease, until_us=until_us),
        )

    async def release_run(self, access: Access, lease: Lease) -> None:
        """See `HistoryStore`."""
        return await self._through(
            Call("release_run", access, (lease.response_id,)),
            lambda: self.inner.release_run(access, lease),
        )

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Sequence[Lease]:
        """See `HistoryStore`."""
        return await self._through(
            Call("orphan_runs", None, ()),
            lambda: self.inner.orphan_runs(now_us=now_us, limit=limit, timeout_s=timeout_s),
        )

    async def request_cancel(self, access: Access, response_id: str) -> StoredResponse | None:
        """See `HistoryStore`."""
        return await self._through(
            Call("request_cancel", access, (response_id,)),
            lambda: self.inner.request_cancel(access, response_id),
        )

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
        return await self._through(
            Call("append_events", access, (response_id,)),
            lambda: self.inner.append_events(
                access, response_id, blobs, expires_us=expires_us, token=token
            ),
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
        return await self._through(
            Call("read_events", access, (response_id,)),
            lambda: self.inner.read_events(
                access, response_id, after=after, limit=limit, bytes_max=bytes_max
            ),
        )

    async def reserve_key(
        self, access: Access, key: Idempotency, response_id: str, *, now_us: int
    ) -> Reserved:
        """See `HistoryStore`."""
        return await self._through(
            Call("reserve_key", access, (mark_of(key.key), response_id)),
            lambda: self.inner.reserve_key(access, key, response_id, now_us=now_us),
        )

    async def release_key(self, access: Access, key: str, response_id: str) -> None:
        """See `HistoryStore`."""
        return await self._through(
            Call("release_key", access, (mark_of(key), response_id)),
            lambda: self.inner.release_key(access, key, response_id),
        )


class StoreWrapper(ConversationsWrapper, ResponsesWrapper, RunsWrapper):
    """Wrapper of a whole store."""

    async def ping(self, *, timeout_s: float) -> None:
        """See `HistoryStore`."""
        return await self._through(
            Call("ping", None, ()), lambda: self.inner.ping(timeout_s=timeout_s)
        )

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        """See `HistoryStore`."""
        return await self._through(
            Call("purge", None, ()),
            lambda: self.inner.purge(now_us=now_us, batch=batch, timeout_s=timeout_s),
        )

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        """See `HistoryStore`."""
        return await self._through(
            Call("figures", None, ()), lambda: self.inner.figures(timeout_s=timeout_s)
        )

    async def tenant_figures(self, access: Access) -> StoreFigures:
        """See `HistoryStore`."""
        return await self._through(
            Call("tenant_figures", access, ()), lambda: self.inner.tenant_figures(access)
        )

    def pool(self) -> PoolFigures | None:
        """See `HistoryStore`."""
        return self.inner.pool()

    async def start(self) -> None:
        """See `HistoryStore`."""
        await self.inner.start()

    async def close(self) -> None:
        """See `HistoryStore`."""
        await self.inner.close()

    @property
    def kind(self) -> str:
        """Which store it is inside."""
        return self.inner.kind

    @property
    def shared(self) -> bool:
        """Whether all nodes see the same."""
        return self.inner.shared
