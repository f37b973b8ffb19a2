"""Migrations of SQLite, and what holds in every database; those of a real PostgreSQL are integration tests."""

import ast
import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, create_engine

from smg_migrations.running import WAIT_S, History
from smg_storage.errors import OldTablesError, StoreError
from smg_storage.migrate import Migrations, head
from smg_storage.options import SchemaNames, StoreOptions, TableNames
from smg_storage.sql.open import open_store
from smg_storage.sql.schema.naming import Naming, NamingError
from smg_storage.sql.schema.revision import NEEDED, VERSION_TABLE
from smg_storage.sql.schema.tables import Tables
from smg_storage.url import StoreUrlError, parse_store_url
from support.house.tree import sources
from support.store_contract.maker import Clock
from support.stores.migrations import differences, fill

T = TypeVar("T")

OTHER_NAMES = SchemaNames(
    tables={
        "conversations": TableNames(table="Talks", columns={"id": "Talk$Id"}),
        "conversation_item_links": TableNames(skip_columns=("added_at",)),
        "responses": TableNames(
            extra_columns={"region": {"type": "string", "default": "eu"}},
            skip_columns=("depth", "model"),
        ),
    }
)


def migrations(path: Path, schema: SchemaNames | None = None) -> Migrations:
    url = parse_store_url(f"sqlite:///{path}")
    return Migrations(url, StoreOptions(schema=schema or SchemaNames()))


def within(path: Path, job: Callable[[Connection], T]) -> T:
    engine = create_engine(f"sqlite:///{path}")
    try:
        with engine.begin() as connection:
            return job(connection)
    finally:
        engine.dispose()


def shape(path: Path) -> list[tuple[object, ...]]:
    """Everything but the table of the version, whose constraint has another name."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2"
        ).fetchall()
    connection.close()
    return [row for row in rows if VERSION_TABLE not in row[1]]


@pytest.mark.parametrize("schema", [SchemaNames(), OTHER_NAMES], ids=["ours", "theirs"])
async def test_up_down_and_up_again_with_rows_gives_what_the_code_expects(
    tmp_path: Path, schema: SchemaNames
) -> None:
    path, plain = tmp_path / "moved.db", tmp_path / "made.db"
    tables = Tables(Naming(schema))
    moving = migrations(path, schema)
    up = await moving.upgrade()
    made = shape(path)
    within(path, lambda at: fill(at, tables, rows=1_000))
    again = await moving.upgrade()
    down = await moving.downgrade("base")
    left = shape(path)
    back = await moving.upgrade()
    within(plain, tables.metadata.create_all)
    assert (up.found, up.reached) == ("", NEEDED)
    assert (again.found, again.reached, again.steps) == (NEEDED, NEEDED, ())
    assert (down.found, down.reached) == (NEEDED, "")
    assert left == []
    assert back.steps == up.steps
    assert within(path, lambda at: differences(at, tables)) == []
    assert made == shape(path) == shape(plain)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("ALTER TABLE responses DROP COLUMN cancel_requested", "add_column"),
        ("ALTER TABLE responses ADD COLUMN more TEXT", "remove_column"),
        ("DROP INDEX ix_responses_safety", "add_index"),
        ("DROP TABLE idempotency_keys", "add_table"),
    ],
)
async def test_a_difference_would_be_found(tmp_path: Path, change: str, found: str) -> None:
    path = tmp_path / "h.db"
    await migrations(path).upgrade()
    within(path, lambda at: at.exec_driver_sql(change))
    assert [each[0] for each in within(path, lambda at: differences(at, Tables()))][:1] == [found]


async def test_every_step_up_and_down_works_with_a_thousand_rows(tmp_path: Path) -> None:
    moving = migrations(tmp_path / "h.db")
    await moving.upgrade()
    revisions = History().revisions
    # Rows are written as of the newest; they have to survive every step but the first, which makes the tables.
    within(tmp_path / "h.db", lambda at: fill(at, Tables(), rows=1_000))
    for revision in reversed(revisions[:-1]):
        assert (await moving.downgrade(revision)).reached == revision
        assert await moving.current() == revision
    for revision in revisions:
        await moving.upgrade(revision)
    assert await moving.current() == revisions[-1]
    with sqlite3.connect(tmp_path / "h.db") as connection:
        (count,) = connection.execute("SELECT count(*) FROM responses").fetchone()
    connection.close()
    assert count == 1_000


async def test_of_several_at_once_one_migrates_and_the_others_find_nothing_to_do(
    tmp_path: Path,
) -> None:
    moved = await asyncio.gather(*(migrations(tmp_path / "h.db").upgrade() for _ in range(5)))
    assert sorted(len(each.steps) for each in moved) == [0, 0, 0, 0, 1]
    assert {each.reached for each in moved} == {NEEDED}


async def test_whoever_waits_too_long_is_told_that_somebody_else_is_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_migrations.running.WAIT_S", 0.05)
    path = tmp_path / "h.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(StoreError, match="somebody else is migrating"):
            await migrations(path).upgrade()
    finally:
        holder.close()
    assert (await migrations(path).upgrade()).reached == NEEDED


def test_the_newest_revision_is_the_one_that_the_code_needs() -> None:
    assert head() == NEEDED
    assert WAIT_S == 60


def test_there_is_one_line_of_revisions_each_with_a_number_and_words() -> None:
    history = History()
    folder = Path(history.script.dir) / "versions"
    files = sorted(path.name for path in folder.glob("*.py"))
    assert list(history.revisions) == [f"{place + 1:04}" for place in range(len(files))]
    assert [name[:5] for name in files] == [f"{revision}_" for revision in history.revisions]
    assert history.script.get_heads() == [history.head]


async def test_a_dry_run_tells_the_steps_and_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    planned = await migrations(path).upgrade(dry_run=True)
    assert not path.exists()
    assert planned.steps[0].startswith("0001: The tables of history")
    await migrations(path).upgrade()
    undone = await migrations(path).downgrade("base", dry_run=True)
    assert undone.steps[0].startswith("undo 0001: ")
    assert await migrations(path).current() == NEEDED
    assert (await migrations(path).upgrade(dry_run=True)).steps == ()


def test_asking_for_the_revision_makes_no_file(tmp_path: Path) -> None:
    assert asyncio.run(migrations(tmp_path / "h.db").current()) == ""
    assert list(tmp_path.iterdir()) == []


async def test_stamping_writes_a_revision_down_and_nothing_else(tmp_path: Path) -> None:
    moving = migrations(tmp_path / "h.db")
    await moving.stamp()
    assert await moving.current() == NEEDED
    assert shape(tmp_path / "h.db") == []
    await moving.stamp("base")
    assert await moving.current() == ""
    assert (await moving.upgrade()).reached == NEEDED


async def test_tables_of_a_newer_program_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    await migrations(path).upgrade()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.close()
    moved = await migrations(path).upgrade()
    assert (moved.found, moved.reached, moved.steps) == ("9999", "9999", ())
    with pytest.raises(OldTablesError, match="revision 9999, which this program does not know"):
        await migrations(path).downgrade("base")
    store = open_store(parse_store_url(f"sqlite:///{path}"), StoreOptions(), Clock())
    await store.start()
    await store.close()
    await migrations(path).stamp("0001")
    assert await migrations(path).current() == "0001"


@pytest.mark.parametrize("to", ["0000", "9999", "heads", "-1", "0001'; DROP TABLE responses"])
async def test_a_revision_that_there_is_none_of_is_refused(tmp_path: Path, to: str) -> None:
    for move in ("upgrade", "downgrade", "stamp"):
        with pytest.raises(OldTablesError, match="there is no revision"):
            await getattr(migrations(tmp_path / "h.db"), move)(to)
    with pytest.raises(OldTablesError, match="there is no revision"):
        migrations(tmp_path / "h.db").statements(to=to)


async def test_columns_of_hooks_are_added_when_they_are_named_later(tmp_path: Path) -> None:
    kinds = ("string", "integer", "number", "text", "boolean")
    hooked = SchemaNames(
        tables={
            "responses": TableNames(extra_columns={f"x_{kind}": {"type": kind} for kind in kinds})
        }
    )
    path = tmp_path / "h.db"
    await migrations(path).upgrade()
    added = await migrations(path, hooked).upgrade()
    assert added.steps == tuple(f"column responses.x_{kind}" for kind in sorted(kinds))
    assert (await migrations(path, hooked).upgrade()).steps == ()
    assert within(path, lambda at: differences(at, Tables(Naming(hooked)))) == []


async def test_a_failing_step_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE elsewhere (id)")
        connection.execute("CREATE INDEX ix_idempotency_keys_expires ON elsewhere (id)")
    connection.close()
    before = shape(path)
    with pytest.raises(StoreError):
        await migrations(path).upgrade()
    assert shape(path) == before
    assert await migrations(path).current() == ""


async def test_tables_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE responses (id, raw_response)")
    connection.close()
    with pytest.raises(OldTablesError, match="a table responses already that is not ours"):
        await migrations(path).upgrade()
    assert [row[1] for row in shape(path)] == ["responses"]


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be made"):
        await migrations(tmp_path / "nowhere" / "h.db").upgrade()


def test_a_store_without_tables_and_names_that_cannot_be_are_refused(tmp_path: Path) -> None:
    for url in ("memory:", "none:", "redis://h/0"):
        with pytest.raises(StoreUrlError, match="no tables"):
            Migrations(parse_store_url(url), StoreOptions())
    with pytest.raises(NamingError):
        migrations(tmp_path / "h.db", SchemaNames(tables={"nothing": TableNames()}))


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    asyncio.run(migrations(tmp_path / "h.db").upgrade())
    assert (tmp_path / "h.db").stat().st_mode & 0o777 == 0o600


def test_statements_make_the_same_tables(tmp_path: Path) -> None:
    script = migrations(tmp_path / "unused.db").statements()
    with sqlite3.connect(tmp_path / "h.db") as connection:
        connection.executescript(script)
    connection.close()
    assert within(tmp_path / "h.db", lambda at: differences(at, Tables())) == []
    assert asyncio.run(migrations(tmp_path / "h.db").current()) == NEEDED
    undoing = migrations(tmp_path / "h.db").statements(found="0001", to="base")
    with sqlite3.connect(tmp_path / "h.db") as connection:
        connection.executescript(undoing)
    connection.close()
    assert shape(tmp_path / "h.db") == []


# ── Who needs Alembic ────────────────────────────────────────────────────────


def imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_alembic_is_imported_by_the_migrations_and_by_nothing_else() -> None:
    users = {
        source.path
        for source in sources()
        if source.path.endswith(".py")
        and "alembic" in source.text
        and "alembic" in imported(ast.parse(source.text))
    }
    assert users
    assert {
        path
        for path in users
        if not path.startswith(("migrations/", "tests/support/stores/migrations.py"))
    } == set()


def test_a_first_start_of_sqlite_and_the_command_line_load_no_alembic(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from smg_storage.open import open_store
from smg_storage.options import StoreOptions
async def main():
    store = open_store("sqlite:///{tmp_path / "h.db"}", options=StoreOptions(), now_us=lambda: 1)
    await store.start()
    await store.close()
asyncio.run(main())
import smg_node.admin.cli
assert "alembic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert asyncio.run(migrations(tmp_path / "h.db").upgrade()).steps == ()


async def test_old_tables_are_brought_up_to_date_by_a_start_that_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.db"
    called: list[Any] = []

    async def upgrade(self: Migrations, to: str = "head", *, dry_run: bool = False) -> None:
        called.append(self)
        within(
            path, lambda at: at.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '0001'")
        )

    monkeypatch.setattr(Migrations, "upgrade", upgrade)
    await migrations(path).stamp("0001")
    within(path, lambda at: fill_nothing(at))
    options = StoreOptions(auto_migrate=True)
    store = open_store(parse_store_url(f"sqlite:///{path}"), options, Clock())
    await store.start()
    await store.close()
    assert len(called) == 1


def fill_nothing(connection: Connection) -> None:
    """Tables that are there, of a revision before the first."""
    Tables().metadata.create_all(connection)
    connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '0000'")
