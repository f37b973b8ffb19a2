"""Store protocol of history: conversations, responses and runs. Every store
passes the same tests, unchanged.

Each method takes its caller's `Access` first, answers frozen records, raises only `StoreError`, and
starts no task. A write that is done again with the same ids does nothing and answers the same; with
other content it is a conflict. A record of another tenant is not there.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

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


class ConversationStore(Protocol):
    """Conversations and their items. An item gets the next position of its conversation, without gaps."""

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """Keep a new conversation; one that is there and the same is answered as it is."""
        ...

    async def get_conversation(self, access: Access, conversation_id: str) -> Conversation | None:
        """Return a conversation."""
        ...

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
        ...

    async def delete_conversation(self, access: Access, conversation_id: str) -> bool:
        """Forget it with its links, and with items that nothing refers to then; return whether it was there."""
        ...

    async def create_item(self, access: Access, record: Item) -> Item:
        """Keep an item that is not linked yet."""
        ...

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Append items in this order, all or none, and return their positions; what is linked stays where it is.

        BAD_REFERENCE for a conversation or an item that is not there. If something is appended, the conversation is
        not over before `expires_us`; 0 leaves that as it is, and so does a time before the one it has. Items need no
        end of their own: they go with the last conversation that they are in.
        """
        ...

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
        ...

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> ItemPage | None:
        """Return a part of a conversation, in one round trip; None if there is no such conversation."""
        ...

    async def newest_items(
        self, access: Access, conversation_id: str, *, items_max: int, bytes_max: int
    ) -> ItemPage | None:
        """Return the newest items, the newest first, up to a number of them and of their bytes; at least one."""
        ...

    async def get_item(self, access: Access, item_id: str) -> Item | None:
        """Return an item of a conversation, or of a response that was kept with its locations."""
        ...

    async def find_items(self, access: Access, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return those that are there, by id, in one round trip."""
        ...

    async def is_item_linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Return whether an item is in a conversation."""
        ...

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Take an item out of a conversation, and forget it if it is in no other; return whether it was there.

        The positions of the others stay.
        """
        ...


class ResponseStore(Protocol):
    """Responses, in chains."""

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """Write all that a response leaves behind as one unit; its id makes a repetition harmless.

        BAD_REFERENCE for a conversation that is not there.
        """
        ...

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """Keep a response without anything else, and return its id."""
        ...

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """Return a response."""
        ...

    async def patch_response(
        self,
        access: Access,
        response_id: str,
        patch: Patch,
        *,
        from_statuses: Sequence[Status],
        token: int = 0,
    ) -> StoredResponse | None:
        """Change a response that has one of these statuses, and that lease; else CONFLICT. None if it is not there."""
        ...

    async def delete_response(self, access: Access, response_id: str) -> bool:
        """Forget a response, its events and the locations of its items; return whether it was there."""
        ...

    async def get_response_chain(
        self, access: Access, response_id: str, *, items_max: int, bytes_max: int
    ) -> Chain:
        """Return a response and what it continues, in one round trip, up to a number and to bytes of documents.

        Empty and `missing` that one if it is not there. CORRUPT for one that continues itself.
        """
        ...

    async def list_identifier_responses(
        self, access: Access, identifier: str, page: PageAsk
    ) -> ResponsePage:
        """Return the responses made for a person, by the caller's identifier of that person."""
        ...

    async def delete_identifier_responses(self, access: Access, identifier: str) -> int:
        """Forget all of them; return how many there were."""
        ...


class RunStore(Protocol):
    """Runs of responses: owners, what their streams said, and keys of clients."""

    async def claim_run(
        self, access: Access, response_id: str, owner: str, *, now_us: int, until_us: int
    ) -> Lease | None:
        """Become the owner of a response that is not final and has none, or one whose lease is over; None else."""
        ...

    async def renew_run(self, access: Access, lease: Lease, *, until_us: int) -> Lease:
        """Stay the owner, and learn whether a cancel was requested; CONFLICT for a
        node that is no longer the owner.
        """
        ...

    async def release_run(self, access: Access, lease: Lease) -> None:
        """Be the owner no longer; nothing happens if this one is not."""
        ...

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Sequence[Lease]:
        """Return background responses of all tenants, not final, whose lease is over: the oldest first."""
        ...

    async def request_cancel(self, access: Access, response_id: str) -> StoredResponse | None:
        """Note that a cancel was requested, unless it is final; return it as
        it is, None if it is not there.
        """
        ...

    async def append_events(
        self,
        access: Access,
        response_id: str,
        blobs: Sequence[EventBlob],
        *,
        expires_us: int,
        token: int = 0,
    ) -> None:
        """Keep parts of a stream, all or none; one whose first number is there already stays as it was.

        With a token, CONFLICT unless the response is there, is not final, and has that token: checked as one step
        with the writing. A log is over as one, at the time that was given with its first part; then it may begin
        again.
        """
        ...

    async def read_events(
        self,
        access: Access,
        response_id: str,
        *,
        after: int,
        limit: int,
        bytes_max: int = EVENTS_BYTES_MAX,
    ) -> Sequence[EventBlob]:
        """Return the parts that have events after that number (-1: all), in order; parts do not overlap.

        Up to so many, and up to so many bytes of them, but one at least if there is one: only an empty answer means
        that there are no more.
        """
        ...

    async def reserve_key(
        self, access: Access, key: Idempotency, response_id: str, *, now_us: int
    ) -> Reserved:
        """Reserve a key for a response, or learn that it had been, for the same request or for another one."""
        ...

    async def release_key(self, access: Access, key: str, response_id: str) -> None:
        """Give a key back, so that it is new again; nothing happens if it stands for another response."""
        ...


class HistoryStore(ConversationStore, ResponseStore, RunStore, Protocol):
    """All of it, and the store itself."""

    @property
    def kind(self) -> str:
        """Which it is, in one word: memory, sqlite, postgresql, oracle or redis."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all nodes of a cluster see the same: not for what lies on one machine."""
        ...

    async def start(self) -> None:
        """Connect, and find out whether the tables are as they have to be; StoreError where that cannot be."""
        ...

    async def ping(self, *, timeout_s: float) -> None:
        """Return if it can be read and written; StoreError says what it cannot."""
        ...

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        """Take away some of what is over, the oldest first; return how much it was."""
        ...

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        """Return about how much there is, of all tenants."""
        ...

    async def tenant_figures(self, access: Access) -> StoreFigures:
        """Return about how much this tenant has; `bytes` is that of its documents. May take the time of a long read."""
        ...

    def pool(self) -> PoolFigures | None:
        """Return how busy its connections are; None for what has none."""
        ...

    async def close(self) -> None:
        """End in order; what was acknowledged is kept."""
        ...
