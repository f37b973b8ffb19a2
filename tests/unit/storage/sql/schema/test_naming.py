import sqlite3
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import Integer

from smg_storage.options import SchemaNames, StoreOptions, TableNames
from smg_storage.records import PageAsk
from smg_storage.sql.schema.naming import LOGICAL, Naming, NamingError
from smg_storage.sql.schema.tables import Tables
from support.store_contract.stage import Stage
from support.stores.sql_stores import SqliteMaker

OTHERS = SchemaNames(
    tables={
        "conversations": TableNames(table="Chats", columns={"id": "chat", "metadata": "m$1"}),
        "conversation_items": TableNames(
            table="entries",
            columns={"doc": "body"},
            skip_columns=("response_id", "role"),
            extra_columns={"region": {"type": "string", "default": "eu"}},
        ),
        "conversation_item_links": TableNames(skip_columns=("added_at",)),
        "responses": TableNames(
            table="answers",
            columns={"raw_response": "body", "input": "asked"},
            skip_columns=("model", "depth", "completed_at"),
            extra_columns={"cost": {"type": "integer"}},
        ),
    }
)


def refused(**tables: TableNames) -> str:
    with pytest.raises(NamingError) as told:
        Tables(Naming(SchemaNames(tables=tables)))
    return str(told.value)


def test_names_that_cannot_be_are_refused() -> None:
    assert "'1st'" in refused(responses=TableNames(table="1st"))
    assert "is no name" in refused(responses=TableNames(columns={"model": 'a"b'}))
    assert "is no name" in refused(responses=TableNames(table="x" * 64))
    assert "is no name" in refused(responses=TableNames(extra_columns={"a b": {}}))
    with pytest.raises(NamingError, match="owner"):
        Tables(Naming(SchemaNames(owner="a;b")))


def test_what_there_is_not_cannot_be_named() -> None:
    assert "no such table" in refused(answers=TableNames())
    assert "no such column" in refused(responses=TableNames(columns={"text": "x"}))
    assert "no such column" in refused(responses=TableNames(skip_columns=("text",)))


def test_two_things_of_one_name_are_refused() -> None:
    assert "the name of two" in refused(responses=TableNames(columns={"model": "STATUS"}))
    assert "the name of two" in refused(responses=TableNames(table="conversations"))
    assert "the name of two" in refused(responses=TableNames(extra_columns={"model": {}}))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table, column)
        for table, columns in LOGICAL.items()
        for column in columns
        if column in ("tenant", "id", "doc", "input", "raw_response", "position", "status")
        or column in ("lease_token", "expires_at", "safety_identifier", "refs", "metadata")
    ],
)
def test_what_is_needed_cannot_be_left_out(table: str, column: str) -> None:
    assert "cannot be left out" in refused(**{table: TableNames(skip_columns=(column,))})


def test_extra_columns_say_what_they_are() -> None:
    bad = TableNames(extra_columns={"x": {"type": "blob"}})
    assert "blob is none of" in refused(responses=bad)
    bad = TableNames(extra_columns={"x": {"typ": "string"}})
    assert "not typ" in refused(responses=bad)


def test_every_logical_column_is_in_a_table_of_that_name() -> None:
    tables = Tables()
    for name, columns in LOGICAL.items():
        assert tuple(tables.by_name[name].c.keys()) == columns
    assert isinstance(tables.responses.c.depth.type, Integer)


async def test_a_store_works_under_other_names(tmp_path: Path) -> None:
    maker = SqliteMaker(tmp_path, StoreOptions(schema=OTHERS))
    async with maker.open() as opened:
        stage = Stage(opened)
        turn = stage.turn(await stage.new_conversation())
        assert (await stage.store.commit_turn(stage.access, turn)).again is False
        assert (await stage.other.commit_turn(stage.access, turn)).again is True
        page = await stage.store.list_items(
            stage.access, turn.response.conversation_id, PageAsk(newest_first=False)
        )
        assert page is not None
        assert list(page.items) == [
            structs.replace(item, role="", response_id="") for item in turn.items
        ]
        assert await stage.store.get_response(stage.access, turn.response.id) == structs.replace(
            turn.response, model="", depth=0, completed_us=0
        )
    with sqlite3.connect(tmp_path / "history-1.db") as connection:
        row = connection.execute('SELECT "region", "body" FROM "entries"').fetchone()
        assert row == ("eu", turn.items[0].document.decode())
        assert connection.execute('SELECT "cost", "asked" FROM "answers"').fetchone()[0] is None
        assert connection.execute('SELECT "m$1" FROM "Chats"').fetchone()
    connection.close()
