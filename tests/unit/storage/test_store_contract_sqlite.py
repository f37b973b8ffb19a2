from pathlib import Path

import pytest

from support.sql_stores import SqliteMaker
from support.store_contract.maker import StoreMaker
from support.store_contract.suite import HistoryStoreContract


class TestSqlite(HistoryStoreContract):
    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return SqliteMaker(tmp_path)
