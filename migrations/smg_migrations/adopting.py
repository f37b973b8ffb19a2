"""Adopting of SMG's tables (Shepherd Model Gateway, version 3 of its PostgreSQL schema) into ours.

They have our names and fewer columns, so they are renamed, ours are made in their place, and what
is in them is copied, a page at a time. Every row would have to be written again either way (an item
there is kept in parts, a link has no position), and what was there stays as it was: going back
gives it back. It is one transaction: no reader ever sees half of it, and what fails leaves SMG's
tables alone.

All of it belongs to no tenant. Chains, conversations and the order of their items are kept; ids as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from alembic.operations import Operations
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    cast,
    exists,
    func,
    insert,
    inspect,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from smg_migrations.adopted import item_row, metadata_text, response_rows
from smg_migrations.errors import MigrationError
from smg_migrations.names import Names, owner_of, quoted

NO_TENANT: Final = "-"
ASIDE: Final = "smg_v3_"
_NAME_MAX: Final = 63
_PAGE_ROWS: Final = 200
"""Rows that are in memory at once: documents have megabytes at worst."""
_THEIRS: Final[Mapping[str, Sequence[str]]] = {
    "conversations": ("id", "created_at", "metadata"),
    "conversation_items": (
        "id",
        "response_id",
        "item_type",
        "role",
        "content",
        "status",
        "created_at",
    ),
    "conversation_item_links": ("conversation_id", "item_id", "added_at"),
    "responses": (
        "id",
        "conversation_id",
        "previous_response_id",
        "input",
        "created_at",
        "safety_identifier",
        "model",
        "raw_response",
    ),
}
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "conversations": frozenset({"id"}),
    "conversation_items": frozenset({"id", "item_type"}),
    "conversation_item_links": frozenset({"conversation_id", "item_id"}),
    "responses": frozenset({"id"}),
}
"""Columns that nobody can have left out."""
_BEFORE_3: Final = frozenset({"user_id", "output", "instructions", "tool_calls"})
"""Columns of responses that SMG dropped on its way to version 3."""

Row = dict[str, Any]


class Aside:
    """Aside tables: SMG's under their new names, with the columns that
    they have, by our words for them.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables

    def table(self, name: str) -> Table | None:
        """Return one of them, if it was there."""
        return self._tables.get(name)

    def pages(self, connection: Connection, name: str) -> Iterator[list[Row]]:
        """Yield the rows of a table that has an id, JSON as text, NULL for columns that are not there."""
        table, last = self._tables.get(name), ""
        if table is None:
            return
        found = [_shown(table, key).label(key) for key in _THEIRS[name]]
        while True:
            page = select(*found).where(table.c.id > last).order_by(table.c.id).limit(_PAGE_ROWS)
            rows = [dict(row) for row in connection.execute(page).mappings()]
            if rows:
                last = rows[-1]["id"]
                yield rows
            if len(rows) < _PAGE_ROWS:
                return


def _shown(table: Table, key: str) -> Any:
    if key not in table.c:
        return null()
    column = table.c[key]
    written = isinstance(column.type, JSON | postgresql.JSONB)
    return cast(column, Text) if written else column


def set_aside(op: Operations, names: Names, wanted: Sequence[str]) -> Aside | None:
    """Rename SMG's tables, if they are where ours are to be. MigrationError if other tables are."""
    if op.get_context().as_sql:
        # What is not there to be looked at is taken to be empty.
        return None
    connection = op.get_bind()
    looked, owner = inspect(connection), owner_of(names)
    there = {name for name in wanted if looked.has_table(names.table(name), schema=owner)}
    if not there:
        return None
    shapes = {name: _columns(connection, names, name) for name in sorted(there)}
    for name, columns in shapes.items():
        _check(connection.dialect.name, names, name, columns)
    for name in shapes:
        if looked.has_table(_aside(names, name), schema=owner):
            raise MigrationError(f"there is a table {_aside(names, name)} already, of another time")
        op.rename_table(names.table(name), _aside(names, name), schema=names.owner or None)
    metadata = MetaData(schema=owner)
    return Aside(
        {
            name: Table(quoted(_aside(names, name)), metadata, *columns)
            for name, columns in shapes.items()
        }
    )


def _columns(connection: Connection, names: Names, name: str) -> list[Column[Any]]:
    """The columns of a table that is there, by our words for them where we have one."""
    words = {names.column(name, key): key for key in (*_THEIRS.get(name, ()), "tenant")}
    found = inspect(connection).get_columns(names.table(name), schema=owner_of(names))
    return [
        Column(quoted(each["name"]), each["type"], key=words.get(each["name"], each["name"]))
        for each in found
    ]


def _check(dialect: str, names: Names, name: str, columns: Sequence[Column[Any]]) -> None:
    keys = {column.key for column in columns}
    theirs = name in _KEYS and _KEYS[name] <= keys and "tenant" not in keys
    if not theirs or dialect != "postgresql":
        raise MigrationError(
            f"there is a table {names.table(name)} already that is not ours: give ours other names"
            " (storage.tables) or a schema of their own (storage.owner)"
        )
    if name == "responses" and keys & _BEFORE_3:
        raise MigrationError(
            "the tables are those of an SMG before version 3 of its schema: let it migrate them first"
        )


def _aside(names: Names, name: str) -> str:
    return f"{ASIDE}{names.table(name)}"[:_NAME_MAX]


def give_back(op: Operations, names: Names) -> None:
    """Rename SMG's tables back, if there are any."""
    if op.get_context().as_sql:
        return
    looked = inspect(op.get_bind())
    for name in _THEIRS:
        if looked.has_table(_aside(names, name), schema=owner_of(names)):
            op.rename_table(_aside(names, name), names.table(name), schema=names.owner or None)


def adopt(connection: Connection, names: Names, tables: Mapping[str, Table], aside: Aside) -> None:
    """Copy everything out of SMG's tables into ours, which are empty."""
    now: datetime = connection.execute(select(func.now())).scalar_one()
    _conversations(connection, tables, aside, now)
    _items(connection, tables, aside, now)
    _links(connection, tables, aside)
    _responses(connection, tables, aside, now)
    if names.has("responses", "depth"):
        _depths(connection, tables["responses"])


def _conversations(
    connection: Connection, tables: Mapping[str, Table], aside: Aside, now: datetime
) -> None:
    for rows in aside.pages(connection, "conversations"):
        _put(
            connection,
            tables["conversations"],
            [
                {
                    "id": row["id"],
                    "created_at": row["created_at"] or now,
                    "updated_at": row["created_at"] or now,
                    "metadata": metadata_text(row["metadata"]),
                    "version": 0,
                    "next_position": 1,
                }
                for row in rows
            ],
        )


def _items(
    connection: Connection, tables: Mapping[str, Table], aside: Aside, now: datetime
) -> None:
    for rows in aside.pages(connection, "conversation_items"):
        found = [item_row(row) for row in rows]
        filled = [{**row, "created_at": row["created_at"] or now, "refs": 0} for row in found]
        _put(connection, tables["conversation_items"], filled)


def _responses(
    connection: Connection, tables: Mapping[str, Table], aside: Aside, now: datetime
) -> None:
    for rows in aside.pages(connection, "responses"):
        for row in rows:
            row["created_at"] = row["created_at"] or now
        found = [response_rows(row) for row in rows]
        _put(connection, tables["responses"], [response for response, _ in found])
        locations = [location for _, located in found for location in located]
        _put(connection, tables["item_locations"], locations)


def _put(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows of no tenant, without columns that were left out. What is there already stays."""
    filled = [
        {"tenant": NO_TENANT, **{key: row[key] for key in row if key in table.c}} for row in rows
    ]
    if filled:
        connection.execute(postgresql.insert(table).on_conflict_do_nothing(), filled)


def _links(connection: Connection, tables: Mapping[str, Table], aside: Aside) -> None:
    """Give every link a position in the order that SMG lists them in; those that lead nowhere are left out."""
    theirs = aside.table("conversation_item_links")
    if theirs is None:
        return
    links, items = tables["conversation_item_links"], tables["conversation_items"]
    conversations = tables["conversations"]
    added = theirs.c.get("added_at", items.c.created_at)
    found = select(
        literal(NO_TENANT),
        theirs.c.conversation_id,
        func.row_number().over(
            partition_by=theirs.c.conversation_id, order_by=(added, theirs.c.item_id)
        ),
        theirs.c.item_id,
        *([func.coalesce(added, items.c.created_at)] if "added_at" in links.c else []),
    ).where(
        theirs.c.item_id == items.c.id,
        theirs.c.conversation_id == conversations.c.id,
    )
    connection.execute(insert(links).from_select([column.key for column in links.c], found))
    counted = (
        select(links.c.conversation_id, func.count().label("many"))
        .group_by(links.c.conversation_id)
        .subquery()
    )
    connection.execute(
        update(conversations)
        .values(next_position=counted.c.many + 1)
        .where(conversations.c.id == counted.c.conversation_id)
    )
    used = select(links.c.item_id, func.count().label("many")).group_by(links.c.item_id).subquery()
    connection.execute(update(items).values(refs=used.c.many).where(items.c.id == used.c.item_id))


def _depths(connection: Connection, responses: Table) -> None:
    """Count how many each response continues, from the beginnings on: a circle has none, and stays at 0."""
    before = responses.alias("before")
    follows = exists().where(before.c.id == responses.c.previous_response_id)
    walk = select(responses.c.id, literal(0).label("depth")).where(~follows).cte(recursive=True)
    walk = walk.union_all(
        select(responses.c.id, walk.c.depth + 1).where(
            responses.c.tenant == NO_TENANT, responses.c.previous_response_id == walk.c.id
        )
    )
    deep = select(walk.c.id, walk.c.depth).where(walk.c.depth > 0).subquery()
    connection.execute(
        update(responses).values(depth=deep.c.depth).where(responses.c.id == deep.c.id)
    )
