from collections.abc import Iterator

import pytest

from support.postgres_server import Postgres
from support.sql_stores import PostgresqlMaker, database_of_tables
from support.store_contract.maker import StoreMaker
from support.store_contract.suite import HistoryStoreContract

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    with database_of_tables(postgres) as made:
        yield made


class TestPostgresql(HistoryStoreContract):
    @pytest.fixture
    def maker(self, url: str) -> StoreMaker:
        return PostgresqlMaker(url)
