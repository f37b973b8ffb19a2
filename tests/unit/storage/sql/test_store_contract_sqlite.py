from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.store_contract.maker import StoreMaker
from support.store_contract.suite import HistoryStoreContract
from support.stores.sql_stores import kept_sqlite


@pytest_asyncio.fixture(scope="class", loop_scope="class")
async def maker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StoreMaker]:
    async with kept_sqlite(tmp_path_factory.mktemp("sqlite")) as maker:
        yield maker


class TestSqlite(HistoryStoreContract):
    pass
