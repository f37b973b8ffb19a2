from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from support.store_contract.maker import StoreMaker
from support.store_contract.suite import HistoryStoreContract
from support.stores.postgres_server import Postgres
from support.stores.sql_stores import database_of_tables, kept_postgresql

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    with database_of_tables(postgres) as made:
        yield made


@pytest_asyncio.fixture(scope="class", loop_scope="class")
async def maker(url: str) -> AsyncIterator[StoreMaker]:
    async with kept_postgresql(url) as maker:
        yield maker


class TestPostgresql(HistoryStoreContract):
    pass
