"""More runs at once than are looked at in one go: who is without an owner is found among them all the same."""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator

import pytest

from smg_storage.records import Lease
from support.store_contract.registered import begun, lease_of
from support.store_contract.stage import LEASE_S, Stage
from support.stores.redis_cluster import running_cluster
from support.stores.redis_server import Redis
from support.stores.redis_stores import RedisMaker

pytestmark = pytest.mark.integration
RUNS = 250
# As many at a time as there are connections, so that a slow machine lets none wait in vain for one.
AT_ONCE = 16


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as (_, url):
        yield url


@pytest.fixture(params=["alone", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "alone":
        server: Redis = request.getfixturevalue("redis")
        return server.url
    place: str = request.getfixturevalue("cluster")
    return place


async def few_at_once(calls: Iterable[Awaitable[object]]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(call: Awaitable[object]) -> None:
        async with places:
            await call

    await asyncio.gather(*(one(call) for call in calls))


async def orphans(stage: Stage, at_us: int, limit: int) -> list[Lease]:
    return list(await stage.other.orphan_runs(now_us=at_us, limit=limit, timeout_s=30))


async def test_who_does_not_go_on_is_found_first_among_many_who_do(url: str) -> None:
    async with RedisMaker(url).open() as opened:
        stage = Stage(opened)
        # They all begin at once, so it is their ids that say who is looked at first.
        made = sorted((begun(stage) for _ in range(RUNS)), key=lambda record: record.id)
        await few_at_once(stage.kept(record) for record in made)
        stage.clock.advance_s(5)
        gone = made[-1]
        until_us = stage.in_s(LEASE_S)
        await few_at_once(
            stage.store.renew_run(stage.access, lease_of(record), until_us=until_us)
            for record in made[:-1]
        )
        for _ in range(2):
            found = await orphans(stage, until_us, 5)
            assert len(found) == 5
            assert found[0] == lease_of(gone)
        assert await orphans(stage, gone.lease_until_us, 5) == [lease_of(gone)]
        assert len(await orphans(stage, until_us, RUNS + 9)) == RUNS
