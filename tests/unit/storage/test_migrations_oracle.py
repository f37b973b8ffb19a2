"""There is no Oracle at hand: what it would be told is compared with what was looked over, and with the tables.

`--rewrite` writes it down anew.
"""

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy.dialects.oracle import oracledb
from sqlalchemy.exc import DatabaseError
from sqlalchemy.schema import CreateIndex, CreateTable

from smg_migrations.locks import only_one
from smg_storage.migrate import Called, Migrations
from smg_storage.options import SchemaNames, StoreOptions, TableNames
from smg_storage.sql.schema.naming import Naming
from smg_storage.sql.schema.tables import Tables
from smg_storage.url import parse_store_url
from support.tools.transcripts import REWRITE_VARIABLE

WRITTEN: Final = Path(__file__).parent / "oracle" / "migrations.sql"
URL: Final = parse_store_url("oracle://u:p@h/service")
OTHER_NAMES: Final = SchemaNames(
    owner="Chat",
    tables={
        "responses": TableNames(
            table="Answers",
            columns={"id": "Answer$Id", "input": "asked"},
            extra_columns={"region": {"type": "string", "default": "eu"}},
            skip_columns=("depth",),
        )
    },
)


def lines(statement: str) -> str:
    """One statement on one line, without what only makes it nicer to read."""
    return re.sub(r"\s+", " ", statement).replace("( ", "(").replace(" )", ")").strip(" ;")


def told(script: str) -> list[str]:
    return [lines(part) for part in script.split("\n/\n") if '"' in part]


def migrations(schema: SchemaNames | None = None) -> Migrations:
    return Migrations(URL, StoreOptions(schema=schema or SchemaNames()))


def test_oracle_is_told_this() -> None:
    up = migrations().statements()
    down = migrations().statements(found="0001", to="base")
    said = re.sub(r"[ \t]+\n", "\n", f"{up}\n-- and back\n\n{down}").strip() + "\n"
    if os.environ.get(REWRITE_VARIABLE) == "1":
        WRITTEN.write_text(said, encoding="utf-8")
    assert WRITTEN.read_text(encoding="utf-8") == said


@pytest.mark.parametrize("schema", [SchemaNames(), OTHER_NAMES], ids=["ours", "theirs"])
def test_these_are_the_tables_that_the_code_expects(schema: SchemaNames) -> None:
    dialect = oracledb.dialect()  # type: ignore[no-untyped-call]  # the library's own
    expected = set()
    for table in Tables(Naming(schema)).by_name.values():
        expected.add(lines(str(CreateTable(table).compile(dialect=dialect))))
        expected |= {
            lines(str(CreateIndex(index).compile(dialect=dialect))) for index in table.indexes
        }
    script = [
        lines(re.sub(r"^--.*$", "", part, flags=re.MULTILINE))
        for part in migrations(schema).statements().split("\n/\n")
    ]
    made = {part for part in script if re.match(r"CREATE (TABLE|INDEX) .*\"", part)}
    assert {part for part in made if "smg_schema_version" not in part} == expected


class Recording:
    """A connection to nowhere that remembers what it was told."""

    def __init__(self, *refused: str) -> None:
        self.dialect: Any = oracledb.dialect()  # type: ignore[no-untyped-call]  # the library's own
        self.said: list[str] = []
        self._refused = refused

    @contextmanager
    def begin(self) -> Any:
        self.said.append("BEGIN")
        yield
        self.said.append("COMMIT")

    def execute(self, statement: Any) -> None:
        self.said.append(str(statement))
        for code in self._refused:
            if self.said[-1].startswith("CREATE"):
                raise DatabaseError("…", None, Exception(f"{code}: no"))


def test_the_lock_is_a_table_that_a_connection_of_its_own_holds() -> None:
    for connection in (Recording(), Recording("ORA-00955")):
        with only_one(connection, Called(Naming()), wait_s=60):  # type: ignore[arg-type]  # it only speaks
            during = list(connection.said)
        assert during == [
            "BEGIN",
            'CREATE TABLE "smg_schema_lock" (id NUMBER(1))',
            'LOCK TABLE "smg_schema_lock" IN EXCLUSIVE MODE WAIT 60',
        ]
        assert connection.said == [*during, "COMMIT"]


def test_a_lock_that_cannot_be_made_is_an_error() -> None:
    connection = Recording("ORA-01031")
    with (
        pytest.raises(DatabaseError),
        only_one(connection, Called(Naming()), wait_s=60),  # type: ignore[arg-type]  # it only speaks
    ):
        pass
