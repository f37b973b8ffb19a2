"""No store: history where nothing is there, and nothing can be kept.

A node asks `kind` before it promises a client to keep something. What still gets here is refused, because a client
that was told "kept" would come back for it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.options import StoreOptions
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
    KeyState,
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
from smg_storage.store import HistoryStore
from smg_storage.url import StoreUrl


def _refuse() -> NoReturn:
    raise StoreError(StoreErrorKind.REJECTED, "this node keeps no history (its store is none:)")


class _NoConversations:
    """Conversations: there are none."""

    async def create_conversation(self, access: Access, record: Conversation) -> Conversation:
        """Refuse."""
        _refuse()

    async def get_conversation(self, access: Access, conversation_id: str) -> Conversation | None:
        """Return None."""
        return None

    async def update_conversation(
        self,
        access: Access,
        conversation_id: str,
        metadata: bytes,
        *,
        now_us: int,
        if_version: int | None = None,
    ) -> Conversation | None:
        """Return None."""
        return None

    async def delete_conversation(self, access: Access, conversation_id: str) -> bool:
        """Return that it was not there."""
        return False

    async def create_item(self, access: Access, record: Item) -> Item:
        """Refuse."""
        _refuse()

    async def link_items(
        self,
        access: Access,
        conversation_id: str,
        item_ids: Sequence[str],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Refuse."""
        _refuse()

    async def append_items(
        self,
        access: Access,
        conversation_id: str,
        records: Sequence[Item],
        *,
        now_us: int,
        expires_us: int = NEVER_US,
    ) -> Sequence[int]:
        """Refuse."""
        _refuse()

    async def list_items(
        self, access: Access, conversation_id: str, page: PageAsk
    ) -> ItemPage | None:
        """Return None."""
        return None

    async def newest_items(
        self, access: Access, conversation_id: str, *, items_max: int, bytes_max: int
    ) -> ItemPage | None:
        """Return None."""
        return None

    async def get_item(self, access: Access, item_id: str) -> Item | None:
        """Return None."""
        return None

    async def find_items(self, access: Access, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return none of them."""
        return {}

    async def is_item_linked(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Return that it is not."""
        return False

    async def delete_item(self, access: Access, conversation_id: str, item_id: str) -> bool:
        """Return that it was not there."""
        return False


class _NoResponses:
    """Responses: there are none."""

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """Refuse."""
        _refuse()

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """Refuse."""
        _refuse()

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """Return None."""
        return None

    async def patch_response(
        self,
        access: Access,
        response_id: str,
        patch: Patch,
        *,
        from_statuses: Sequence[Status],
        token: int = 0,
    ) -> StoredResponse | None:
        """Return None."""
        return None

    async def delete_response(self, access: Access, response_id: str) -> bool:
        """Return that it was not there."""
        return False

    async def get_response_chain(
        self, access: Access, response_id: str, *, items_max: int, bytes_max: int
    ) -> Chain:
        """Return that its first one is missing."""
        return Chain([], complete=False, missing=response_id)

    async def list_identifier_responses(
        self, access: Access, identifier: str, page: PageAsk
    ) -> ResponsePage:
        """Return an empty page; BAD_REFERENCE for one that begins after something."""
        if page.after:
            raise StoreError(
                StoreErrorKind.BAD_REFERENCE, f"no response {page.after}", missing=page.after
            )
        return ResponsePage([], has_more=False)

    async def delete_identifier_responses(self, access: Access, identifier: str) -> int:
        """Return that there were none."""
        return 0


class _NoRuns:
    """Runs: there are none."""

    async def claim_run(
        self, access: Access, response_id: str, owner: str, *, now_us: int, until_us: int
    ) -> Lease | None:
        """Return None."""
        return None

    async def renew_run(self, access: Access, lease: Lease, *, until_us: int) -> Lease:
        """Refuse: no response is run here."""
        raise StoreError(StoreErrorKind.CONFLICT, f"response {lease.response_id} is not run here")

    async def release_run(self, access: Access, lease: Lease) -> None:
        """Do nothing."""

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Sequence[Lease]:
        """Return none."""
        return ()

    async def request_cancel(self, access: Access, response_id: str) -> StoredResponse | None:
        """Return None."""
        return None

    async def append_events(
        self,
        access: Access,
        response_id: str,
        blobs: Sequence[EventBlob],
        *,
        expires_us: int,
        token: int = 0,
    ) -> None:
        """Refuse."""
        _refuse()

    async def read_events(
        self,
        access: Access,
        response_id: str,
        *,
        after: int,
        limit: int,
        bytes_max: int = EVENTS_BYTES_MAX,
    ) -> Sequence[EventBlob]:
        """Return none."""
        return ()

    async def reserve_key(
        self, access: Access, key: Idempotency, response_id: str, *, now_us: int
    ) -> Reserved:
        """Return that it is new: what was answered before is not known."""
        return Reserved(KeyState.NEW)

    async def release_key(self, access: Access, key: str, response_id: str) -> None:
        """Do nothing: none was kept."""


class NoStore(_NoConversations, _NoResponses, _NoRuns):
    """A store that keeps nothing."""

    @property
    def kind(self) -> str:
        """Which it is: none."""
        return "none"

    @property
    def shared(self) -> bool:
        """Whether all nodes see the same: nothing, all of them."""
        return True

    async def start(self) -> None:
        """Begin; there is nothing to connect to."""

    async def ping(self, *, timeout_s: float) -> None:
        """Return: it is as well as it will ever be."""

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        """Return that there was nothing."""
        return 0

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        """Return that there is nothing."""
        return StoreFigures(conversations=0, items=0, responses=0, bytes=0)

    async def tenant_figures(self, access: Access) -> StoreFigures:
        """Return that there is nothing."""
        return StoreFigures(conversations=0, items=0, responses=0, bytes=0)

    def pool(self) -> PoolFigures | None:
        """Return None: there are no connections."""
        return None

    async def close(self) -> None:
        """End."""


def open_store(url: StoreUrl, options: StoreOptions, now_us: Callable[[], int]) -> HistoryStore:
    """Return the store that keeps nothing."""
    return NoStore()
