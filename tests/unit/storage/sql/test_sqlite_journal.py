"""What SQLite has in its journal is moved into the file beside the writer, and never into a file that is gone."""

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from smg_storage.options import StoreOptions
from smg_storage.sql.database_urls import journal_mover, sqlite_engine
from smg_storage.sql.databases import MOVE_EVERY_S, Threads
from smg_storage.sql.schema.naming import Naming
from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.statements.all_statements import Statements
from smg_storage.sql.transaction import Asked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history with blanks?.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Engine]:
    engine = sqlite_engine(str(path), StoreOptions(), writes=True)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE said (word TEXT)"))
    yield engine
    engine.dispose()


def _in_the_file(path: Path) -> int:
    """Return how many rows are in the file itself, its journal left aside; -1 if it has no table yet."""
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    connection = sqlite3.connect(copy)
    try:
        return int(connection.execute("SELECT count(*) FROM said").fetchone()[0])
    except sqlite3.OperationalError:
        return -1
    finally:
        connection.close()


def test_what_was_written_is_in_the_file_once_it_was_moved(path: Path, writer: Engine) -> None:
    with writer.begin() as connection:
        connection.execute(text("INSERT INTO said VALUES ('hello')"))
    assert _in_the_file(path) == -1
    journal_mover(str(path))()
    assert _in_the_file(path) == 1


def test_it_moves_while_somebody_is_writing(path: Path, writer: Engine) -> None:
    with writer.begin() as connection:
        connection.execute(text("INSERT INTO said VALUES ('before')"))
    with writer.begin() as connection:
        connection.execute(text("INSERT INTO said VALUES ('not yet')"))
        journal_mover(str(path))()
        assert _in_the_file(path) == 1
    journal_mover(str(path))()
    assert _in_the_file(path) == 2


def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    journal_mover(str(tmp_path / "gone.db"))()
    assert list(tmp_path.iterdir()) == []


def test_it_is_moved_after_a_write_and_then_not_for_a_while(path: Path, writer: Engine) -> None:
    moved: list[int] = []

    async def write_twice() -> None:
        readers = sqlite_engine(str(path), StoreOptions(), writes=False)
        asked = Asked(Statements(Tables(Naming()), "sqlite"), "tenant", 0)
        database = Threads(writer, readers, readers_max=1, move=lambda: moved.append(1))
        try:
            for _ in range(2):
                await database.write(asked, lambda _: None, timeout_s=5.0)
        finally:
            await database.close()

    assert MOVE_EVERY_S >= 0.1
    asyncio.run(write_twice())
    assert len(moved) == 1


def test_a_slow_disk_collects_no_moves(
    path: Path, writer: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_storage.sql.databases.MOVE_EVERY_S", 0.0)
    begun: list[int] = []
    go_on = threading.Event()

    def slow() -> None:
        begun.append(1)
        assert go_on.wait(10.0)

    async def write_often() -> None:
        readers = sqlite_engine(str(path), StoreOptions(), writes=False)
        asked = Asked(Statements(Tables(Naming()), "sqlite"), "tenant", 0)
        database = Threads(writer, readers, readers_max=1, move=slow)
        try:
            for _ in range(5):
                await database.write(asked, lambda _: None, timeout_s=5.0)
        finally:
            go_on.set()
            await database.close()

    asyncio.run(write_often())
    assert len(begun) == 1
