from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from support.store_contract.maker import StoreMaker
from support.store_contract.suite import HistoryStoreContract, ScatteredStoreContract
from support.stores.redis_cluster import running_cluster
from support.stores.redis_server import Redis
from support.stores.redis_stores import kept_redis

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_cluster(tmp_path_factory.mktemp("redis")) as (_, url):
        yield url


@pytest_asyncio.fixture(scope="class", loop_scope="class")
async def on_a_server(redis: Redis) -> AsyncIterator[StoreMaker]:
    async with kept_redis(redis.url) as maker:
        yield maker


@pytest_asyncio.fixture(scope="class", loop_scope="class")
async def on_a_cluster(cluster: str) -> AsyncIterator[StoreMaker]:
    async with kept_redis(cluster) as maker:
        yield maker


class TestRedisStore(HistoryStoreContract):
    @pytest.fixture
    def maker(self, on_a_server: StoreMaker) -> StoreMaker:
        return on_a_server


class TestRedisStoreWithAThreadForEveryId(ScatteredStoreContract):
    @pytest.fixture
    def maker(self, on_a_server: StoreMaker) -> StoreMaker:
        return on_a_server


class TestRedisClusterStore(HistoryStoreContract):
    @pytest.fixture
    def maker(self, on_a_cluster: StoreMaker) -> StoreMaker:
        return on_a_cluster


class TestRedisClusterStoreWithAThreadForEveryId(ScatteredStoreContract):
    @pytest.fixture
    def maker(self, on_a_cluster: StoreMaker) -> StoreMaker:
        return on_a_cluster
