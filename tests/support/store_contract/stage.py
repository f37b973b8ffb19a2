"""What every case of the contract stands on: a store, two tenants, and records that are quickly made."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final

import msgspec
import pytest

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import new_id, new_thread
from smg_storage.records import (
    Access,
    Chain,
    Conversation,
    Item,
    ItemPage,
    Lease,
    PageAsk,
    Status,
    StoredResponse,
    Turn,
)
from smg_storage.store import HistoryStore
from support.store_contract.maker import Clock, Opened

_TIMEOUT_S: Final = 60.0
HOUR_S: Final = 3_600
LEASE_S: Final = 15


class Stage:
    """A store on which nothing has happened yet.

    All ids it makes are of one thread, as those of one chat are, unless a case begins another one. `scattered`: each
    is of its own, as if all ids were of other gateways.
    """

    def __init__(self, opened: Opened, *, scattered: bool = False) -> None:
        self._scattered = scattered
        self.store: HistoryStore = opened.store
        self.other: HistoryStore = opened.other
        self.clock: Clock = opened.clock
        self.access = Access(tenant="acme", timeout_s=_TIMEOUT_S)
        self.foreign = Access(tenant="rival", timeout_s=_TIMEOUT_S)
        self._chance = Random(7)
        self._holder = opened.holder
        self.thread = new_thread(self._chance, holder=self._holder)
        if self._holder:
            self.access = msgspec.structs.replace(self.access, thread=self.thread)

    @property
    def now_us(self) -> int:
        """What time it is."""
        return self.clock.now_us

    def in_s(self, seconds: int) -> int:
        """Return the time that it will be then."""
        return self.now_us + seconds * 1_000_000

    def begin_thread(self) -> str:
        """Go on with ids of another thread."""
        self.thread = new_thread(self._chance, holder=self._holder)
        return self.thread

    def new_id(self, prefix: str) -> str:
        """Return an id that nothing has."""
        if self._scattered:
            self.begin_thread()
        return new_id(prefix, self.thread, now_ms=self.now_us // 1_000, chance=self._chance)

    # ── Records ──────────────────────────────────────────────────────────────

    def conversation(self, metadata: bytes = b'{"topic":"pipes"}') -> Conversation:
        """Return one that is not kept yet."""
        return Conversation(
            id=self.new_id("conv"),
            created_us=self.now_us,
            updated_us=self.now_us,
            metadata=metadata,
        )

    def item(self, text: str = "hello", *, item_id: str = "", response_id: str = "") -> Item:
        """Return a message that is not kept yet."""
        chosen = item_id or self.new_id("msg")
        return Item(
            id=chosen,
            item_type="message",
            document=message(chosen, text),
            created_us=self.now_us,
            role="user",
            status="completed",
            response_id=response_id,
        )

    def items(self, count: int) -> list[Item]:
        """Return several."""
        return [self.item(f"number {index}") for index in range(count)]

    def response(
        self,
        *,
        status: Status = Status.COMPLETED,
        previous: StoredResponse | None = None,
        conversation_id: str = "",
        background: bool = False,
        identifier: str = "",
        text: str = "an answer",
    ) -> StoredResponse:
        """Return one that is not kept yet, with one item of input and one of output."""
        return StoredResponse(
            id=self.new_id("resp"),
            status=status,
            model="llama-3",
            created_us=self.now_us,
            input=b"[" + message(self.new_id("msg"), "a question") + b"]",
            response=b'{"output":[' + message(self.new_id("msg"), text) + b"]}",
            conversation_id=conversation_id,
            previous_response_id=previous.id if previous is not None else "",
            depth=previous.depth + 1 if previous is not None else 0,
            background=background,
            completed_us=self.now_us if status.is_final else 0,
            safety_identifier=identifier,
        )

    def running(self) -> StoredResponse:
        """Return a response in the background that nobody has claimed yet."""
        return self.response(status=Status.QUEUED, background=True)

    def turn(self, conversation_id: str = "", *, items: int = 2, token: int = 0) -> Turn:
        """Return a turn that adds items to a conversation."""
        response = self.response(conversation_id=conversation_id)
        made = [self.item(f"part {index}", response_id=response.id) for index in range(items)]
        return Turn(response=response, items=made, links=[item.id for item in made], token=token)

    # ── What is done often ───────────────────────────────────────────────────

    async def new_conversation(self) -> str:
        """Keep a conversation and return its id."""
        return (await self.store.create_conversation(self.access, self.conversation())).id

    async def append(self, conversation_id: str, count: int) -> list[Item]:
        """Append so many new items, at most 100 at once."""
        made = self.items(count)
        for begin in range(0, count, 100):
            await self.store.append_items(
                self.access, conversation_id, made[begin : begin + 100], now_us=self.now_us
            )
        return made

    async def kept(self, record: StoredResponse) -> StoredResponse:
        """Keep a response and return it."""
        assert await self.store.store_response(self.access, record) == record.id
        return record

    async def chain_of(self, count: int) -> list[StoredResponse]:
        """Keep a chain of responses and return them, the oldest first."""
        made: list[StoredResponse] = []
        for _ in range(count):
            made.append(await self.kept(self.response(previous=made[-1] if made else None)))
        return made

    async def chain(
        self, response_id: str, *, items_max: int = 2_000, bytes_max: int = 16 << 20
    ) -> Chain:
        """Read a chain."""
        return await self.store.get_response_chain(
            self.access, response_id, items_max=items_max, bytes_max=bytes_max
        )

    async def claim(self, record: StoredResponse, owner: str = "node-a") -> Lease | None:
        """Claim a run from now on for a lease's time."""
        return await self.store.claim_run(
            self.access, record.id, owner, now_us=self.now_us, until_us=self.in_s(LEASE_S)
        )

    async def claimed(self, record: StoredResponse, owner: str = "node-a") -> Lease:
        """Claim a run that nobody has."""
        lease = await self.claim(record, owner)
        assert lease is not None
        return lease

    async def page(
        self, conversation_id: str, limit: int = 100, after: str = "", *, newest_first: bool = False
    ) -> ItemPage:
        """Read a part of a conversation that is there."""
        ask = PageAsk(limit=limit, after=after, newest_first=newest_first)
        page = await self.store.list_items(self.access, conversation_id, ask)
        assert page is not None
        return page

    async def pages(
        self, conversation_id: str, limit: int = 100, *, newest_first: bool = False
    ) -> AsyncIterator[ItemPage]:
        """Read all of a conversation, part by part."""
        after = ""
        while True:
            page = await self.page(conversation_id, limit, after, newest_first=newest_first)
            yield page
            if not page.has_more:
                return
            after = page.items[-1].id

    async def listed(self, conversation_id: str, *, newest_first: bool = False) -> list[str]:
        """Return the ids of all items of a conversation."""
        return [
            item.id
            async for page in self.pages(conversation_id, newest_first=newest_first)
            for item in page.items
        ]

    async def positions(self, conversation_id: str) -> list[int]:
        """Return the positions of all items of a conversation."""
        return [place async for page in self.pages(conversation_id) for place in page.positions]


def message(item_id: str, text: str) -> bytes:
    """Return the document of a message."""
    said = {
        "id": item_id,
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": text,
    }
    return msgspec.json.encode(said)


def ids(records: Sequence[Item] | Sequence[StoredResponse]) -> list[str]:
    """Return the ids of records."""
    return [record.id for record in records]


def unversioned(record: StoredResponse | None) -> StoredResponse | None:
    """Return a response without what the store counts by itself."""
    return None if record is None else msgspec.structs.replace(record, version=0)


@contextmanager
def refused(kind: StoreErrorKind, *, missing: str = "") -> Iterator[None]:
    """Expect that the store refuses what is done inside, for this reason."""
    with pytest.raises(StoreError) as told:
        yield
    assert told.value.kind is kind
    assert told.value.missing == missing
    assert told.value.message


CONFLICT: Final = StoreErrorKind.CONFLICT
BAD_REFERENCE: Final = StoreErrorKind.BAD_REFERENCE
