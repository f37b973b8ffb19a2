import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs.event_codec import packed
from smg_node.history.runs.event_log_reader import BLOBS_MAX, PAGE_BYTES, LogReader
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import EVENTS_BYTES_MAX, Access, EventBlob

ACCESS = Access(tenant="acme")
ID = "resp_1"


def event(number: int, text: str = "") -> NumberedEvent:
    data = b'{"type":"t","sequence_number":%d,"text":"%b"}' % (number, text.encode())
    return NumberedEvent(number, "t", data)


def run(first: int, stop: int) -> EventBlob:
    return packed([event(number) for number in range(first, stop)])


class WatchedStore(MemoryStore):
    """Notes what is asked for."""

    def __init__(self) -> None:
        super().__init__(Bounds(), lambda: self.now_us)
        self.now_us = 1
        self.asked: list[int] = []
        self.answered: list[list[int]] = []

    async def read_events(
        self,
        access: Access,
        response_id: str,
        *,
        after: int,
        limit: int,
        bytes_max: int = EVENTS_BYTES_MAX,
    ) -> Sequence[EventBlob]:
        page = await super().read_events(
            access, response_id, after=after, limit=limit, bytes_max=bytes_max
        )
        self.asked.append(after)
        self.answered.append([len(blob.payload) for blob in page])
        return page


async def log_of(*blobs: EventBlob) -> WatchedStore:
    store = WatchedStore()
    await store.append_events(ACCESS, ID, blobs, expires_us=9_999)
    return store


async def numbers(reader: LogReader) -> list[int]:
    read: list[int] = []
    while told := await reader.more():
        read += [one.sequence for one in told]
    return read


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=30), st.integers(-1, 60), st.integers(0, 40)
)
async def test_every_event_after_a_number_is_read_once_however_the_log_is_cut(
    sizes: list[int], after: int, extra: int
) -> None:
    blobs, first = [], 0
    for size in sizes:
        blobs.append(run(first, first + size))
        first += size
    reader = LogReader(await log_of(*blobs), ACCESS, ID, after=after)
    assert await numbers(reader) == list(range(after + 1, first))
    assert not reader.headless
    assert reader.found == (after < first)
    assert reader.last == max(after, first - 1)
    assert await reader.exists()


async def test_what_is_written_later_is_read_later() -> None:
    store = await log_of(run(0, 3))
    reader = LogReader(store, ACCESS, ID)
    assert await numbers(reader) == [0, 1, 2]
    assert await numbers(reader) == []
    await store.append_events(ACCESS, ID, [run(3, 5)], expires_us=9_999)
    assert await numbers(reader) == [3, 4]
    # What was read is not read again to learn that there is nothing more.
    assert store.asked[-1] == 4


async def test_a_number_that_is_not_there_yet_is_waited_for() -> None:
    store = await log_of(run(0, 3))
    reader = LogReader(store, ACCESS, ID, after=4)
    assert await numbers(reader) == []
    assert not reader.found
    await store.append_events(ACCESS, ID, [run(3, 7)], expires_us=9_999)
    assert await numbers(reader) == [5, 6]
    assert reader.found


@pytest.mark.parametrize(
    "blobs",
    [
        (run(0, 3), run(4, 6)),
        (run(0, 3), run(2, 6)),
        (run(0, 3), run(3, 5), run(6, 7)),
    ],
)
async def test_a_hole_or_an_overlap_is_damage(blobs: tuple[EventBlob, ...]) -> None:
    reader = LogReader(await log_of(*blobs), ACCESS, ID)
    with pytest.raises(SmgError, match="damaged"):
        await numbers(reader)


@pytest.mark.parametrize("payload", [b"", b"no", zlib.compress(b"{}"), run(1, 2).payload])
async def test_a_blob_that_is_not_what_it_says_is_damage(payload: bytes) -> None:
    reader = LogReader(await log_of(run(0, 1), EventBlob(1, 3, payload)), ACCESS, ID)
    assert [one.sequence for one in await reader.more()] == [0]
    with pytest.raises(SmgError, match="damaged"):
        await reader.more()


@pytest.mark.parametrize("after", [-1, 0, 2])
async def test_a_log_without_its_beginning_says_so(after: int) -> None:
    reader = LogReader(await log_of(run(3, 6)), ACCESS, ID, after=after)
    assert await numbers(reader) == []
    assert (reader.headless, reader.found) == (True, False)


async def test_a_beginning_that_nobody_wants_may_be_gone() -> None:
    reader = LogReader(await log_of(run(3, 6)), ACCESS, ID, after=3)
    assert await numbers(reader) == [4, 5]
    assert await reader.is_whole()


async def test_what_is_cleared_away_is_noticed() -> None:
    store = await log_of(run(0, 3))
    reader = LogReader(store, ACCESS, ID)
    await numbers(reader)
    assert await reader.is_whole()
    store.now_us = 10_000
    assert not await reader.is_whole()


async def test_nothing_is_there_of_another_tenant() -> None:
    reader = LogReader(await log_of(run(0, 3)), Access(tenant="other"), ID)
    assert await numbers(reader) == []
    assert not await reader.exists()


async def test_a_page_is_bounded_in_bytes_and_in_number() -> None:
    def loud(number: int) -> EventBlob:
        # Not to be packed any smaller.
        noise = "".join(f"{(number * 7919 + k) * 2_654_435_761 % 2**32:08x}" for k in range(90_000))
        return packed([event(number, noise)])

    store = await log_of(*(loud(number) for number in range(6)))
    assert await numbers(LogReader(store, ACCESS, ID)) == list(range(6))
    assert PAGE_BYTES / 2 < max(map(sum, store.answered)) <= PAGE_BYTES
    small = await log_of(*(run(number, number + 1) for number in range(BLOBS_MAX + 10)))
    await numbers(LogReader(small, ACCESS, ID))
    assert [len(page) for page in small.answered] == [BLOBS_MAX, 10, 0]


async def test_only_a_log_that_is_not_caught_up_with_is_worth_asking_at_once() -> None:
    long = LogReader(await log_of(*(run(n, n + 1) for n in range(BLOBS_MAX + 10))), ACCESS, ID)
    assert [(await long.more(), long.may_have_more)[1] for _ in range(BLOBS_MAX)] == [
        True
    ] * BLOBS_MAX
    for left in range(9, -1, -1):
        await long.more()
        assert long.may_have_more == (left > 0)
