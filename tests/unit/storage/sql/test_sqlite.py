import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from msgspec import structs

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.options import StoreOptions
from smg_storage.records import Access
from smg_storage.sql.open import open_store
from smg_storage.sql.schema.revision import NEEDED, VERSION_TABLE, is_older
from smg_storage.sql.store import SqlStore
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock, Opened
from support.store_contract.stage import Stage, refused
from support.stores.sql_costs import COSTS, full_turn
from support.stores.sql_recorder import before_each
from support.stores.sql_stores import SqliteMaker


def at(path: Path, options: StoreOptions | None = None) -> SqlStore:
    return open_store(parse_store_url(f"sqlite:///{path}"), options or StoreOptions(), Clock())


@asynccontextmanager
async def stage_at(path: Path, options: StoreOptions | None = None) -> AsyncIterator[Stage]:
    store = at(path, options)
    await store.start()
    try:
        yield Stage(Opened(store, store, Clock()))
    finally:
        await store.close()


def ask(path: Path, statement: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute(statement).fetchone()
        connection.commit()
        return row[0] if row is not None else None


async def test_a_history_is_read_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with stage_at(path) as stage:
        await stage.new_conversation()
        modes = {
            name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)
        }
        assert modes.keys() == {"history.db", "history.db-wal", "history.db-shm"}
        assert set(modes.values()) == {0o600}


async def test_the_log_is_written_ahead_and_readers_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with stage_at(path) as stage:
        await stage.new_conversation()
        assert ask(path, "PRAGMA journal_mode") == "wal"
        assert (tmp_path / "history.db-wal").exists()
        assert ask(path, f"SELECT version_num FROM {VERSION_TABLE}") == NEEDED


async def test_older_tables_are_told_with_what_to_run(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with stage_at(path):
        pass
    ask(path, f"UPDATE {VERSION_TABLE} SET version_num = '0000_before'")
    store = at(path, StoreOptions(auto_migrate=False))
    with pytest.raises(StoreError, match=r"revision 0000_before.*smg-admin db migrate"):
        await store.start()
    await store.close()


async def test_no_tables_at_all_are_told_too(tmp_path: Path) -> None:
    store = at(tmp_path / "history.db", StoreOptions(auto_migrate=False))
    with pytest.raises(StoreError, match=r"has no tables.*smg-admin db migrate"):
        await store.start()
    await store.close()


async def test_newer_tables_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with stage_at(path):
        pass
    ask(path, f"UPDATE {VERSION_TABLE} SET version_num = '9999_later'")
    async with stage_at(path, StoreOptions(auto_migrate=False)) as stage:
        await stage.new_conversation()


@pytest.mark.parametrize(
    ("found", "older"),
    [("", True), ("0000", True), ("0001", False), ("0001_first", False), ("0002", False)],
)
def test_revisions_are_compared_as_numbers(found: str, older: bool) -> None:
    assert is_older(found, "0001") is older


async def test_old_tables_are_brought_up_to_date_by_whoever_knows_how(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with stage_at(path):
        pass
    ask(path, f"UPDATE {VERSION_TABLE} SET version_num = '0000'")
    called = []

    async def migrate() -> None:
        called.append(1)
        ask(path, f"UPDATE {VERSION_TABLE} SET version_num = '{NEEDED}'")

    store = open_store(
        parse_store_url(f"sqlite:///{path}"), StoreOptions(), Clock(), migrate=migrate
    )
    await store.start()
    await store.close()
    assert called == [1]


async def test_who_cannot_have_the_file_in_time_is_told(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    options = StoreOptions(sqlite_busy_timeout_ms=50)
    async with stage_at(path, options) as stage:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with refused(StoreErrorKind.UNAVAILABLE):
                await stage.new_conversation()
            # Who only reads does not mind.
            assert await stage.store.get_conversation(stage.access, "conv") is None
            other.execute("ROLLBACK")
        await stage.new_conversation()


async def test_a_deadline_holds_and_the_store_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with stage_at(path) as stage:
        hurried = structs.replace(stage.access, timeout_s=0.05)
        turn = stage.turn(items=0)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with refused(StoreErrorKind.UNAVAILABLE):
                await stage.store.commit_turn(hurried, turn)
            other.execute("ROLLBACK")
        # What became of it is not known, and it can be done again.
        await stage.store.commit_turn(stage.access, turn)
        assert await stage.store.get_response(stage.access, turn.response.id) == turn.response


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    store = at(tmp_path / "nowhere" / "history.db")
    with refused(StoreErrorKind.UNAVAILABLE):
        await store.start()
    await store.close()


async def test_a_file_of_something_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(b"something else entirely " * 100)
    store = at(path)
    with refused(StoreErrorKind.CORRUPT):
        await store.start()
    await store.close()


async def test_a_store_that_is_closed_says_so(tmp_path: Path) -> None:
    store = at(tmp_path / "history.db")
    with refused(StoreErrorKind.UNAVAILABLE):
        await store.get_item(Access(), "msg")
    await store.start()
    await store.close()
    with refused(StoreErrorKind.UNAVAILABLE):
        await store.get_item(Access(), "msg")
    await store.close()


async def test_a_name_that_is_too_long_fails_alone(tmp_path: Path) -> None:
    async with SqliteMaker(tmp_path).open() as opened:
        stage = Stage(opened)
        good = [stage.turn(items=0) for _ in range(3)]
        bad = stage.turn(items=0)
        bad = structs.replace(bad, response=structs.replace(bad.response, model="m" * 257))
        answers = await asyncio.gather(
            *(stage.store.commit_turn(stage.access, each) for each in [*good[:2], bad, good[2]]),
            return_exceptions=True,
        )
        kinds = [getattr(each, "kind", None) for each in answers]
        assert kinds == [None, None, StoreErrorKind.TOO_LARGE, None]
        for turn in good:
            assert await stage.store.get_response(stage.access, turn.response.id) is not None


async def test_what_fails_at_any_step_leaves_nothing(tmp_path: Path) -> None:
    async with SqliteMaker(tmp_path).open() as opened:
        stage = Stage(opened)
        turn = full_turn(stage, await stage.new_conversation())
        for step in range(1, COSTS["commit_turn_with_everything"][0] + 1):
            heard: list[str] = []

            def fail(statement: str, heard: list[str] = heard, step: int = step) -> None:
                heard.append(statement)
                if len(heard) == step:
                    raise sqlite3.OperationalError("a disk that is broken")

            with before_each(fail), refused(StoreErrorKind.UNAVAILABLE):
                await stage.store.commit_turn(stage.access, turn)
            assert await stage.store.get_response(stage.access, turn.response.id) is None
            assert await stage.listed(turn.response.conversation_id) == []
        assert (await stage.store.commit_turn(stage.access, turn)).again is False
