"""Nothing is half there: a store that stops between any two of its calls, in a cluster where each lies elsewhere."""

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    Idempotency,
    Item,
    KeyState,
    Location,
    PageAsk,
    Side,
    StoredResponse,
    Turn,
)
from smg_storage.redis.lua_library import Effect
from smg_storage.redis.server import Ask, RedisServer
from support.store_contract.stage import HOUR_S, Stage, ids, refused, unversioned
from support.stores.redis_cluster import running_cluster
from support.stores.redis_stores import RedisMaker

pytestmark = pytest.mark.integration
UNAVAILABLE = StoreErrorKind.UNAVAILABLE
CALLS_MAX = 40


class LostError(OSError):
    """The connection is gone."""


class Scissors:
    """Cut off a store before or after its n-th call, counted from when `at` is set."""

    def __init__(self) -> None:
        self.at = -1
        self.after = False
        self.calls = 0

    def arm(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.calls = at, after, 0

    def check(self, *, done: bool) -> None:
        if self.calls == self.at and done is self.after:
            raise LostError
        self.calls += int(done)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_cluster(tmp_path_factory.mktemp("redis")) as (_, url):
        yield url


@pytest.fixture
async def stage(cluster: str) -> AsyncIterator[Stage]:
    async with RedisMaker(cluster).open() as opened:
        yield Stage(opened, scattered=True)


@pytest.fixture
def scissors(monkeypatch: pytest.MonkeyPatch) -> Scissors:
    """Stand at every call of every store."""
    scissors = Scissors()
    one = RedisServer.call

    async def call(server: RedisServer, effect: Effect, ask: Ask) -> list[Any] | None:
        scissors.check(done=False)
        answer = await one(server, effect, ask)
        scissors.check(done=True)
        return answer

    async def call_all(
        server: RedisServer, effect: Effect, asks: Sequence[Ask]
    ) -> list[list[Any] | None]:
        return [await call(server, effect, ask) for ask in asks]

    monkeypatch.setattr(RedisServer, "call", call)
    monkeypatch.setattr(RedisServer, "call_all", call_all)
    return scissors


@contextmanager
def cut(scissors: Scissors, at: int, *, after: bool) -> Iterator[None]:
    scissors.arm(at, after=after)
    with refused(UNAVAILABLE):
        yield
    scissors.arm(-1, after=False)


class Everything:
    """A turn that leaves something in as many places as there are."""

    def __init__(self, stage: Stage, conversation_id: str, old: Item) -> None:
        response = stage.response(conversation_id=conversation_id, identifier="person")
        items = [stage.item(f"part {index}", response_id=response.id) for index in range(3)]
        self.stage = stage
        self.conversation_id = conversation_id
        self.located = stage.new_id("msg")
        self.key = Idempotency("key", b"d" * 16, stage.in_s(HOUR_S))
        self.turn = Turn(
            response=response,
            items=items,
            links=[items[0].id, old.id, items[1].id, items[2].id],
            locations=[Location(self.located, response.id, Side.OUTPUT, 0)],
            idempotency=self.key,
        )

    @property
    def response(self) -> StoredResponse:
        return self.turn.response

    async def check_all(self) -> None:
        stage, store = self.stage, self.stage.other
        read = await store.get_response(stage.access, self.response.id)
        assert unversioned(read) == self.response
        assert await stage.listed(self.conversation_id) == list(self.turn.links)
        assert await stage.positions(self.conversation_id) == [1, 2, 3, 4]
        found = await store.find_items(stage.access, [*self.turn.links, self.located])
        assert list(found) == [*self.turn.links, self.located]
        page = await store.list_identifier_responses(stage.access, "person", PageAsk())
        assert ids(page.responses) == [self.response.id]
        reserved = await store.reserve_key(
            stage.access, self.key, stage.new_id("resp"), now_us=stage.now_us
        )
        assert (reserved.state, reserved.response_id) == (KeyState.SAME, self.response.id)

    async def check_all_or_nothing(self) -> None:
        stage = self.stage
        read = await stage.other.get_response(stage.access, self.response.id)
        listed = await stage.listed(self.conversation_id)
        if read is None:
            assert listed == []
        else:
            assert unversioned(read) == self.response
            assert listed == list(self.turn.links)


async def new_everything(stage: Stage) -> Everything:
    conversation_id = await stage.new_conversation()
    old = await stage.store.create_item(stage.access, stage.item("was there before"))
    return Everything(stage, conversation_id, old)


@pytest.mark.parametrize("after", [False, True])
async def test_a_turn_is_there_or_not_wherever_it_is_cut_and_whole_when_it_is_repeated(
    cluster: str, scissors: Scissors, after: bool
) -> None:
    async with RedisMaker(cluster).open() as opened:
        whole = await new_everything(Stage(opened, scattered=True))
        scissors.arm(-1, after=False)
        await whole.stage.store.commit_turn(whole.stage.access, whole.turn)
        calls = scissors.calls
        await whole.check_all()
    assert 10 <= calls <= CALLS_MAX
    for at in range(calls):
        async with RedisMaker(cluster).open() as opened:
            made = await new_everything(Stage(opened, scattered=True))
            with cut(scissors, at, after=after):
                await made.stage.store.commit_turn(made.stage.access, made.turn)
            await made.check_all_or_nothing()
            committed = await made.stage.store.commit_turn(made.stage.access, made.turn)
            assert list(committed.positions) == [1, 2, 3, 4]
            await made.check_all()


async def test_a_turn_that_is_refused_leaves_nothing_anywhere(stage: Stage) -> None:
    made = await new_everything(stage)
    nothing = stage.new_id("msg")
    bad = msgspec.structs.replace(made.turn, links=[*made.turn.links, nothing])
    with refused(StoreErrorKind.BAD_REFERENCE, missing=nothing):
        await stage.store.commit_turn(stage.access, bad)
    found = await stage.other.find_items(stage.access, bad.links)
    assert list(found) == [made.turn.links[1]]
    assert found[made.turn.links[1]].document.find(b"was there before") > 0
    assert await stage.listed(made.conversation_id) == []
    await stage.store.commit_turn(stage.access, made.turn)
    await made.check_all()


@pytest.mark.parametrize("scattered", [False, True])
async def test_a_repetition_after_its_items_were_taken_out_brings_nothing_back(
    cluster: str, scattered: bool
) -> None:
    async with RedisMaker(cluster).open() as opened:
        stage = Stage(opened, scattered=scattered)
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id, items=3)
        away = stage.item(item_id="msg_of_a_client", response_id=turn.response.id)
        turn = msgspec.structs.replace(
            turn, items=[*turn.items, away], links=[*turn.links, away.id]
        )
        await stage.store.commit_turn(stage.access, turn)
        assert await stage.listed(conversation_id) == list(turn.links)
        for item_id in turn.links:
            assert await stage.store.delete_item(stage.access, conversation_id, item_id)
        committed = await stage.store.commit_turn(stage.access, turn)
        assert committed.again is True
        assert await stage.listed(conversation_id) == []
        assert await stage.store.find_items(stage.access, turn.links) == {}


async def test_taking_out_what_was_never_in_leaves_it_where_it_is(stage: Stage) -> None:
    item = await stage.store.create_item(stage.access, stage.item())
    for conversation_id in (await stage.new_conversation(), stage.new_id("conv")):
        assert await stage.store.delete_item(stage.access, conversation_id, item.id) is False
    assert await stage.other.get_item(stage.access, item.id) == item


@pytest.mark.parametrize("after", [False, True])
async def test_a_conversation_whose_deletion_is_cut_is_gone_and_its_items_are_swept(
    cluster: str, scissors: Scissors, after: bool
) -> None:
    for at in range(CALLS_MAX):
        async with RedisMaker(cluster).open() as opened:
            stage = Stage(opened, scattered=True)
            conversation_id = await stage.new_conversation()
            made = await stage.append(conversation_id, 4)
            other_id = await stage.new_conversation()
            await stage.store.link_items(stage.access, other_id, [made[0].id], now_us=stage.now_us)
            scissors.arm(at, after=after)
            was_cut = await is_cut(stage.store.delete_conversation(stage.access, conversation_id))
            if not was_cut:
                assert at > 3, "it was not cut at all"
                return
            scissors.arm(-1, after=False)
            gone = await stage.other.get_conversation(stage.access, conversation_id) is None
            assert gone is (after or at > 0)
            if not gone:
                await stage.store.delete_conversation(stage.access, conversation_id)
            await swept(stage)
            assert list(await stage.other.find_items(stage.access, ids(made))) == [made[0].id]
            assert await stage.listed(other_id) == [made[0].id]
    pytest.fail("it takes more calls than it may")


async def is_cut(work: Awaitable[object]) -> bool:
    """Return whether something ended before its time."""
    try:
        await work
    except StoreError as error:
        return error.kind is UNAVAILABLE
    return False


async def swept(stage: Stage) -> int:
    """Purge until the keys have been gone through; return how much that took away."""
    counts = [
        await stage.store.purge(now_us=stage.now_us, batch=500, timeout_s=30) for _ in range(20)
    ]
    return sum(counts)


async def test_a_persons_list_forgets_what_is_gone(stage: Stage) -> None:
    made = [await stage.kept(stage.response(identifier="person")) for _ in range(3)]
    over = msgspec.structs.replace(
        stage.response(identifier="person"), expires_us=stage.in_s(HOUR_S)
    )
    await stage.kept(over)
    stage.clock.advance_s(2 * HOUR_S)
    assert await swept(stage) == 1
    page = await stage.store.list_identifier_responses(
        stage.access, "person", PageAsk(limit=3, newest_first=False)
    )
    assert ids(page.responses) == sorted(ids(made))
    assert page.has_more is False
