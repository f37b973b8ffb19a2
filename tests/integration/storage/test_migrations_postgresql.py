import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from smg_migrations import running
from smg_migrations.locks import only_one
from smg_node.admin.cli import main
from smg_storage.errors import StoreError
from smg_storage.migrate import Called
from smg_storage.options import SchemaNames, StoreOptions, TableNames
from smg_storage.sql.database_urls import postgresql_engine
from smg_storage.sql.open import open_store
from smg_storage.sql.schema.naming import Naming
from smg_storage.sql.schema.tables import Tables
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock
from support.stores.future_revisions import three_revisions
from support.stores.migrations import differences, fill
from support.stores.postgres_schema import database, migrations, shape, with_engine
from support.stores.postgres_server import Postgres

pytestmark = pytest.mark.integration

OTHER_NAMES = SchemaNames(
    owner="Chat",
    tables={
        "conversations": TableNames(table="Talks", columns={"id": "Talk$Id"}),
        "responses": TableNames(
            extra_columns={"region": {"type": "string", "default": "eu"}},
            skip_columns=("depth",),
        ),
    },
)


@pytest.mark.parametrize("schema", [SchemaNames(), OTHER_NAMES], ids=["ours", "theirs"])
async def test_up_down_and_up_again_with_rows_gives_what_the_code_expects(
    postgres: Postgres, schema: SchemaNames
) -> None:
    tables = Tables(Naming(schema))
    owner = schema.owner or "public"
    async with database(postgres) as (url, connection), database(postgres) as (plain, other):
        await connection.execute('CREATE SCHEMA IF NOT EXISTS "Chat"')
        await other.execute('CREATE SCHEMA IF NOT EXISTS "Chat"')
        moving = migrations(url, schema)
        up = await moving.upgrade()
        made = await shape(connection, owner)
        await with_engine(url, lambda at: fill(at, tables, rows=1_000))
        again = await moving.upgrade()
        down = await moving.downgrade("base")
        left = await shape(connection, owner)
        back = await moving.upgrade()
        found = await with_engine(url, lambda at: differences(at, tables))
        await with_engine(plain, tables.metadata.create_all)
        await with_engine(plain, tables.version.create)
        expected = await shape(other, owner)
        remade = await shape(connection, owner)
    assert (up.found, up.reached, back.reached) == ("", "0001", "0001")
    assert again.steps == ()
    assert down.reached == ""
    assert [row[0] for row in left[0]] == ["smg_schema_version"]
    assert found == []
    assert made == remade == expected


async def test_of_two_at_once_one_migrates_and_the_other_finds_nothing_to_do(
    postgres: Postgres,
) -> None:
    async with database(postgres) as (url, _):
        moved = await asyncio.gather(*(migrations(url).upgrade() for _ in range(3)))
    assert sorted(len(each.steps) for each in moved) == [0, 0, 1]
    assert {each.reached for each in moved} == {"0001"}


async def test_whoever_waits_too_long_is_told_that_somebody_else_is_at_it(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_migrations.running.WAIT_S", 1)
    async with database(postgres) as (url, connection):
        await connection.execute('CREATE SCHEMA "Chat"')
        engine = postgresql_engine(parse_store_url(url), StoreOptions())
        async with engine.connect() as holder:
            held = await holder.run_sync(lambda at: only_one(at, Called(Naming()), wait_s=1))
            await holder.run_sync(lambda _: held.__enter__())
            with pytest.raises(StoreError, match="somebody else is migrating"):
                await migrations(url).upgrade()
            # Tables of another owner are other tables.
            elsewhere = await migrations(url, OTHER_NAMES).upgrade()
            await holder.run_sync(lambda _: held.__exit__(None, None, None))
        await engine.dispose()
        here = await migrations(url).upgrade()
    assert (elsewhere.reached, here.reached) == ("0001", "0001")


async def test_columns_of_hooks_are_added_when_they_are_named_later(postgres: Postgres) -> None:
    hooked = SchemaNames(
        tables={"responses": TableNames(extra_columns={"team": {"type": "integer"}})}
    )
    async with database(postgres) as (url, _):
        await migrations(url).upgrade()
        added = await migrations(url, hooked).upgrade()
        again = await migrations(url, hooked).upgrade()
        found = await with_engine(url, lambda at: differences(at, Tables(Naming(hooked))))
    assert added.steps == ("column responses.team",)
    assert again.steps == ()
    assert found == []


async def test_a_failing_step_leaves_nothing_behind(postgres: Postgres) -> None:
    async with database(postgres) as (url, connection):
        await connection.execute('CREATE TABLE "elsewhere" (id int)')
        await connection.execute('CREATE INDEX "ix_idempotency_keys_expires" ON elsewhere (id)')
        with pytest.raises(StoreError):
            await migrations(url).upgrade()
        left = await shape(connection, "public")
        at = await migrations(url).current()
    assert {row[0] for row in left[0]} <= {"elsewhere", "smg_schema_version"}
    assert at == ""


async def test_the_command_line_does_the_same(
    postgres: Postgres, capsys: pytest.CaptureFixture[str]
) -> None:
    async with database(postgres) as (url, _):
        words = ("--store", url, "--json")
        codes = [
            await asyncio.to_thread(main, ("db", command, *words))
            for command in ("status", "migrate", "status")
        ]
    told = [
        json.loads(part) for part in capsys.readouterr().out.replace("}\n{", "}\0{").split("\0")
    ]
    assert codes == [0, 0, 0]
    assert [each.get("state") for each in told] == ["none", None, "current"]
    assert told[1]["revision"] == "0001"


async def test_steps_to_come_are_kept_one_by_one(postgres: Postgres, tmp_path: Path) -> None:
    history, names = three_revisions(tmp_path), Called(Naming())
    async with database(postgres) as (url, connection):
        engine = postgresql_engine(parse_store_url(url), StoreOptions())

        async def move(how: Any, **options: Any) -> Any:
            async with engine.connect() as at:
                return await at.run_sync(partial(how, names=names, history=history, **options))

        await move(running.upgrade, to="0001")
        await with_engine(url, lambda at: fill(at, Tables(), rows=1_000))
        await connection.execute("UPDATE conversation_items SET id = 'bad' WHERE id = 'x1'")
        with pytest.raises(DBAPIError):
            await move(running.upgrade)
        # The second was kept, and of the third nothing is there.
        failed = await migrations(url).current()
        indexes = await connection.fetchval(
            "SELECT count(*) FROM pg_index WHERE indexrelid = 'ix_more'::regclass AND indisvalid"
        )
        await connection.execute("UPDATE conversation_items SET id = 'x1' WHERE id = 'bad'")
        resumed = await move(running.upgrade)
        back = await move(running.downgrade, to="0001")
        found = await with_engine(url, lambda at: differences(at, Tables()))
        rows = await connection.fetchval("SELECT count(*) FROM responses")
        await engine.dispose()
    assert (failed, indexes) == ("0002", 1)
    assert (resumed.found, resumed.reached, back.reached) == ("0002", "0003", "0001")
    assert (found, rows) == ([], 1_000)


async def test_no_password_is_told_when_nobody_answers() -> None:
    with pytest.raises(StoreError) as caught:
        await migrations("postgresql://u:topsecret@127.0.0.1:1/d").upgrade()
    assert "topsecret" not in str(caught.value)


async def test_several_nodes_may_start_over_one_empty_database(postgres: Postgres) -> None:
    async with database(postgres) as (url, _):
        options = StoreOptions(auto_migrate=True)
        stores = [open_store(parse_store_url(url), options, Clock()) for _ in range(4)]
        await asyncio.gather(*(store.start() for store in stores))
        for store in stores:
            await store.close()
        found = await with_engine(url, lambda at: differences(at, Tables()))
        at = await migrations(url).current()
    assert (found, at) == ([], "0001")
