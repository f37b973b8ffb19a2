import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from smg_storage.options import StoreOptions
from smg_storage.sql.open import open_store
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock, Opened
from support.store_contract.stage import Stage
from support.stores.sqlite_crashes import STATEMENTS

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dying")


@pytest.fixture(scope="module")
def said(folder: Path) -> Mapping[int, list[str]]:
    """What each of them said before it died."""
    ended = subprocess.run(
        [sys.executable, "-m", "support.stores.sqlite_crashes", str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    words: dict[int, list[str]] = {}
    for line in ended.stdout.splitlines():
        number, *rest = line.split()
        words.setdefault(int(number), []).extend(rest)
    return words


@pytest.mark.parametrize("last", range(1, STATEMENTS + 2))
async def test_a_turn_is_kept_as_a_whole_wherever_the_process_dies(
    folder: Path, said: Mapping[int, list[str]], last: int
) -> None:
    conversation_id, response_id, item_id, *kept = said[last]
    assert bool(kept) == (last > STATEMENTS)
    path = folder / f"{last}.db"
    store = open_store(parse_store_url(f"sqlite:///{path}"), StoreOptions(), Clock())
    await store.start()
    stage = Stage(Opened(store, store, Clock()))
    assert (await store.get_response(stage.access, response_id) is not None) == bool(kept)
    assert (await store.get_item(stage.access, item_id) is not None) == bool(kept)
    assert len(await stage.listed(conversation_id)) == (3 if kept else 0)
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("conversation_items", "item_locations", "idempotency_keys"):
            (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert bool(rows) == bool(kept), table
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
