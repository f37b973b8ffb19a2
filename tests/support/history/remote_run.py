"""A response that another node makes: its row and its log in a store, written step by step."""

import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.presenter import ResponsePresenter
from smg_node.history.peers.follower_notices import FollowerNotices
from smg_node.history.peers.peer_interface import NoPeers
from smg_node.history.ports import Direct, HistoryOptions
from smg_node.history.runs.event_codec import packed
from smg_node.history.runs.event_following import Events, Followed, Following
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Access, EventBlob, Status, StoredResponse, Turn
from smg_storage.store import HistoryStore
from support.history.history_world import ask_of, begin, block, finish

ID = "resp_0198c0ffee005eed5eed5eed0123456789abcdef01234567"
MINUTE_US = 60_000_000

Step = Callable[[], Awaitable[None]]


def three_items() -> list[Event]:
    return [
        begin(),
        *block(0, "reasoning", "I must look.", "I must ", "look."),
        *block(1, "text", "It rains.", "It", " ", "rains."),
        *block(2, "call", "{}", name="f", call_id="call_1"),
        *finish("tool_calls"),
    ]


class Elsewhere:
    """Events `told`, the terminal one last, and the objects before and after."""

    def __init__(
        self,
        events: Sequence[Event] | None = None,
        ended: FinalStatus | None = None,
        *,
        background: bool = True,
    ) -> None:
        self.now_us = 1_000_000
        self.store = MemoryStore(Bounds(), lambda: self.now_us)
        self.access = Access(tenant="acme")
        self.background = background
        teller = ResponsePresenter(
            ask_of(input="hi", background=background),
            response_id=ID,
            thread="5eed5eed5eed",
            created_s=1,
            now_ms=1_000,
            chance=random.Random(3),
        )
        self.told = teller.queue() if background else []
        self.queued = teller.response()
        self.told += teller.begin()
        for event in three_items() if events is None else events:
            self.told += teller.tell([event])
        self.ended = (ended or teller.outcome or FinalStatus.completed()).at(2)
        self.told += teller.close(self.ended)
        self.response = teller.response()

    @property
    def logged(self) -> list[NumberedEvent]:
        """All but the last event."""
        return self.told[:-1]

    def row(self, status: Status = Status.QUEUED) -> StoredResponse:
        return StoredResponse(
            id=ID,
            status=status,
            model="m",
            created_us=1_000_000,
            input=b"[]",
            response=self.response if status.is_final else self.queued,
            background=True,
        )

    async def begin(self) -> None:
        await self.store.store_response(self.access, self.row())

    async def append(self, first: int, stop: int, *, ttl_us: int = MINUTE_US) -> None:
        """Log the events from `first` up to `stop`, as one blob."""
        await self.put(packed(self.told[first:stop]), ttl_us=ttl_us)

    async def put(self, blob: EventBlob, *, ttl_us: int = MINUTE_US) -> None:
        expires_us = self.now_us + ttl_us
        await self.store.append_events(self.access, ID, [blob], expires_us=expires_us)

    async def log(self, size: int) -> None:
        """Log everything, in blobs of this size."""
        for first in range(0, len(self.logged), size):
            await self.append(first, min(first + size, len(self.logged)))

    async def end(self) -> None:
        final = self.row(Status(self.ended.status))
        await self.store.commit_turn(self.access, Turn(response=final))

    async def whole(self, size: int) -> "Elsewhere":
        """Have been made to the end."""
        await self.begin()
        await self.log(size)
        await self.end()
        return self

    def following(
        self,
        *,
        run: Followed | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
        store: HistoryStore | None = None,
        **options: Any,
    ) -> Following:
        def find(tenant: str, response_id: str) -> Followed | None:
            return run if (tenant, response_id) == (self.access.tenant, ID) else None

        return Following(
            Direct(self.store if store is None else store),
            find,
            options=HistoryOptions(**options),
            notices=FollowerNotices(NoPeers(), lambda *_: None, now_s=time.monotonic),
            sleep=sleep or never,
        )


async def never(_wait_s: float) -> None:
    raise AssertionError("nothing is to be waited for")


class Steps:
    """Sleeps by doing the next step, and notes how long it should have been.

    When everything has happened, one more look may be needed to see that.
    """

    def __init__(self, *steps: Step) -> None:
        self._steps = [*steps, nothing]
        self.waited_s: list[float] = []

    async def __call__(self, wait_s: float) -> None:
        self.waited_s.append(wait_s)
        assert self._steps, "it waits although everything has happened"
        await self._steps.pop(0)()

    @property
    def done(self) -> bool:
        return len(self._steps) <= 1


async def nothing() -> None:
    """Be a step in which nothing happens."""


class RunHere:
    """A run of this process that tells these batches, and whether its followers let go of it."""

    def __init__(self, *batches: Sequence[NumberedEvent], body: bytes = b"{}") -> None:
        self.id = ID
        self._batches = batches
        self._body = body
        self.asked: list[int] = []
        self.letting_go: list[str] = []

    def body(self) -> bytes:
        return self._body

    def follow(self, after: int) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        self.asked.append(after)
        return self._told(after)

    def attend(self) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        return self._told(-1)

    async def _told(self, after: int) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        try:
            for batch in self._batches:
                fresh = [one for one in batch if one.sequence > after]
                if fresh:
                    yield fresh
        finally:
            self.letting_go.append(ID)


async def every(events: AsyncIterator[Sequence[NumberedEvent]]) -> list[NumberedEvent]:
    return [one async for told in events for one in told]


def body_of(raw: bytes) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(raw)
    return decoded


async def broken(events: Events) -> tuple[list[NumberedEvent], SmgError]:
    """Return what a stream told, and what it broke off with."""
    told: list[NumberedEvent] = []

    async def read() -> None:
        async for batch in events:
            told.extend(batch)

    with pytest.raises(SmgError) as found:
        await read()
    return told, found.value
