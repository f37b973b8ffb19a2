from collections.abc import Iterator

import pytest

from support.redis_cluster import running_cluster
from support.redis_server import Redis
from support.redis_stores import RedisMaker
from support.store_contract.maker import StoreMaker
from support.store_contract.suite import HistoryStoreContract, ScatteredStoreContract

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_cluster(tmp_path_factory.mktemp("redis")) as (_, url):
        yield url


class TestRedisStore(HistoryStoreContract):
    @pytest.fixture
    def maker(self, redis: Redis) -> StoreMaker:
        return RedisMaker(redis.url)


class TestRedisStoreWithAThreadForEveryId(ScatteredStoreContract):
    @pytest.fixture
    def maker(self, redis: Redis) -> StoreMaker:
        return RedisMaker(redis.url)


class TestRedisClusterStore(HistoryStoreContract):
    @pytest.fixture
    def maker(self, cluster: str) -> StoreMaker:
        return RedisMaker(cluster)


class TestRedisClusterStoreWithAThreadForEveryId(ScatteredStoreContract):
    @pytest.fixture
    def maker(self, cluster: str) -> StoreMaker:
        return RedisMaker(cluster)
