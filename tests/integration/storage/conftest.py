"""The real servers that stores are tested with: one of each kind in every test process that needs it."""

from collections.abc import Iterator

import pytest

from support.stores.postgres_server import Postgres, running_postgres
from support.stores.redis_server import Redis, running_redis


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A PostgreSQL; who kills it starts it again."""
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A Valkey or Redis that keeps nothing over its death."""
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server
