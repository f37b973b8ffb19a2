from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from smg_storage.records import Idempotency, Location, PageAsk, Patch, Side, Status, Turn
from support.store_contract.stage import HOUR_S, Stage, ids
from support.stores.redis_cluster import running_cluster
from support.stores.redis_monitor import Heard, listening
from support.stores.redis_server import running_redis
from support.stores.redis_stores import RedisMaker

pytestmark = pytest.mark.integration


class Place:
    """A server, and how many commands each operation may take there."""

    def __init__(self, url: str, port: int, command: str) -> None:
        self.url = url
        self.port = port
        self.command = command


@pytest.fixture(scope="module", params=["alone", "cluster"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("redis")
    if request.param == "alone":
        with running_redis(folder, own=True) as server:
            yield Place(server.url, server.port, "FCALL")
    else:
        with running_cluster(folder) as (server, url):
            yield Place(url, server.port, "EVALSHA")


@pytest.fixture
async def stage(place: Place) -> AsyncIterator[Stage]:
    async with RedisMaker(place.url).open() as opened:
        stage = Stage(opened)
        # Scripts are sent whole once, to a server that has not seen them.
        conversation_id = await stage.new_conversation()
        await stage.store.get_conversation(stage.access, conversation_id)
        await stage.store.delete_conversation(stage.access, conversation_id)
        yield stage


@asynccontextmanager
async def one_call(place: Place) -> AsyncIterator[Heard]:
    async with listening(place.port) as heard:
        yield heard
    assert heard.calls == [place.command]


async def test_a_chain_of_two_hundred_is_one_call(stage: Stage, place: Place) -> None:
    made = await stage.chain_of(200)
    async with one_call(place):
        chain = await stage.chain(made[-1].id)
    assert ids(chain.responses) == ids(made[::-1])
    assert chain.complete is True


async def test_a_page_is_one_call(stage: Stage, place: Place) -> None:
    conversation_id = await stage.new_conversation()
    made = await stage.append(conversation_id, 30)
    async with one_call(place):
        page = await stage.page(conversation_id, 10, made[4].id)
    assert ids(page.items) == ids(made[5:15])
    async with one_call(place):
        newest = await stage.store.newest_items(
            stage.access, conversation_id, items_max=20, bytes_max=1 << 20
        )
    assert newest is not None
    assert ids(newest.items) == ids(made[:9:-1])


async def test_a_turn_is_one_call(stage: Stage, place: Place) -> None:
    turn = stage.turn(await stage.new_conversation(), items=6)
    located = stage.new_id("msg")
    turn = msgspec.structs.replace(
        turn, locations=[Location(located, turn.response.id, Side.OUTPUT, 0)]
    )
    async with one_call(place):
        committed = await stage.store.commit_turn(stage.access, turn)
    assert (len(committed.positions), committed.again) == (6, False)
    async with one_call(place):
        assert (await stage.store.commit_turn(stage.access, turn)).again is True
    async with one_call(place):
        found = await stage.store.find_items(stage.access, [*turn.links, located])
    assert list(found) == [*turn.links, located]


async def test_who_is_at_a_run_is_one_call_each(stage: Stage, place: Place) -> None:
    running = await stage.kept(stage.running())
    async with one_call(place):
        lease = await stage.claimed(running)
    async with one_call(place):
        await stage.store.renew_run(stage.access, lease, until_us=stage.in_s(60))
    async with one_call(place):
        await stage.store.patch_response(
            stage.access,
            running.id,
            Patch(status=Status.IN_PROGRESS),
            from_statuses=[Status.QUEUED],
            token=lease.token,
        )
    async with one_call(place):
        await stage.store.release_run(stage.access, lease)


async def test_all_that_a_turn_can_bring_is_one_call_where_all_is_within_reach(
    stage: Stage, place: Place
) -> None:
    response = stage.response(status=Status.QUEUED, background=True, identifier="person")
    key = Idempotency("key", b"d" * 16, stage.in_s(HOUR_S))
    async with listening(place.port) as heard:
        await stage.store.commit_turn(stage.access, Turn(response=response, idempotency=key))
    # In a cluster the key comes before, and the person's list and the runs, in one round trip, after it.
    assert len(heard.calls) == (1 if place.command == "FCALL" else 4)
    async with listening(place.port) as heard:
        page = await stage.store.list_identifier_responses(stage.access, "person", PageAsk())
    assert ids(page.responses) == [response.id]
    assert len(heard.calls) == 2
