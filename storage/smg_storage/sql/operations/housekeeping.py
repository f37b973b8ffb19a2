"""Housekeeping over all tenants: purge, figures, revision and creation of tables."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Executable, Row, inspect

from smg_storage.errors import OldTablesError, StoreError, StoreErrorKind
from smg_storage.records import StoreFigures
from smg_storage.sql.operations.conversations import forget_conversations
from smg_storage.sql.operations.responses import forget_responses
from smg_storage.sql.schema.revision import NEEDED, is_older
from smg_storage.sql.statements.housekeeping import ESTIMATE, READ_ONLY
from smg_storage.sql.unit_of_work import Work

COUNTED_MAX: Final = 1_000_000
"""Of one tenant's rows of a kind: there may be more than so many. They are counted in an index."""
SAMPLED_MAX: Final = 10_000
"""So many documents say how long the others are."""
_COUNTED_MAX: Final = 10_000
"""PostgreSQL counts by reading everything; from so many on it is asked for its guess."""


def purge(work: Work, now_us: int, batch: int) -> int:
    """Delete up to so many rows that are over; return how many it were."""
    work = Work(work.connection, work.say, work.tenant, now_us, careful=work.careful)
    gone = 0
    for step in (_purge_keys, _purge_events, _purge_responses, _purge_items, _purge_conversations):
        if gone < batch:
            gone += step(work, batch - gone)
    return gone


def _over(work: Work, statement: Executable, up_to: int) -> Sequence[Row[Any]]:
    return work.rows(statement, up_to=up_to)


def _by_tenant(rows: Sequence[Row[Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.tenant, []).append(row.key)
    return found


def _purge_keys(work: Work, up_to: int) -> int:
    rows = _over(work, work.say.upkeep.expired_keys, up_to)
    for tenant, keys in _by_tenant(rows).items():
        work.for_tenant(tenant).change_each(work.say.upkeep.drop_key, keys)
    return len(rows)


def _purge_events(work: Work, up_to: int) -> int:
    rows = _over(work, work.say.upkeep.expired_events, up_to)
    work.change_all(
        work.say.upkeep.drop_events,
        [{"of_tenant": row.tenant, "of_id": row.key, "at_seq": row.first_seq} for row in rows],
    )
    return len(rows)


def _purge_responses(work: Work, up_to: int) -> int:
    rows = _over(work, work.say.upkeep.expired_responses, up_to)
    for tenant, ids in _by_tenant(rows).items():
        forget_responses(work.for_tenant(tenant), ids)
    return len(rows)


def _purge_items(work: Work, up_to: int) -> int:
    rows = _over(work, work.say.upkeep.expired_items, up_to)
    for tenant, ids in _by_tenant(rows).items():
        work.for_tenant(tenant).change_each(work.say.upkeep.drop_item, ids)
    return len(rows)


def _purge_conversations(work: Work, up_to: int) -> int:
    rows = _over(work, work.say.upkeep.expired_conversations, up_to)
    for tenant, ids in _by_tenant(rows).items():
        forget_conversations(work.for_tenant(tenant), ids)
    return len(rows)


def figures(work: Work) -> StoreFigures:
    """Count, or guess where counting is dear."""
    say, tables = work.say.upkeep, work.tables
    counted = [
        _count(work, tables.conversations.fullname, say.count_conversations),
        _count(work, tables.items.fullname, say.count_items),
        _count(work, tables.responses.fullname, say.count_responses),
    ]
    return StoreFigures(
        conversations=counted[0][0],
        items=counted[1][0],
        responses=counted[2][0],
        bytes=_bytes(work, [size for _, size in counted]),
    )


def tenant_figures(work: Work) -> StoreFigures:
    """Count what one tenant has; how long its documents are is told by those with the largest ids."""
    row = work.row(work.say.upkeep.tenant_figures, counted_max=COUNTED_MAX, sampled_max=SAMPLED_MAX)
    assert row is not None
    size = _scaled(row.items_bytes, row.items) + _scaled(row.responses_bytes, row.responses)
    return StoreFigures(
        conversations=row.conversations, items=row.items, responses=row.responses, bytes=size
    )


def _scaled(sampled_bytes: int, count: int) -> int:
    """Return how much it is in all: the sample is everything if there is no more than that."""
    return int(sampled_bytes) * count // min(count, SAMPLED_MAX) if count else 0


def _count(work: Work, name: str, count: Executable) -> tuple[int, int]:
    size = -1
    if work.say.dialect == "postgresql":
        quoted = ".".join(f'"{part}"' for part in name.split("."))
        row = work.connection.execute(ESTIMATE, {"name": quoted}).first()
        if row is not None:
            size = int(row.size)
            if row.guess > _COUNTED_MAX:
                return int(row.guess), size
    found = work.connection.execute(count).scalar_one()
    return int(found), size


def _bytes(work: Work, sizes: Sequence[int]) -> int:
    if work.say.dialect == "sqlite":
        pages = work.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        page_bytes = work.connection.exec_driver_sql("PRAGMA page_size").scalar_one()
        return int(pages * page_bytes)
    return sum(sizes) if min(sizes) >= 0 else -1


def found_revision(work: Work) -> str:
    """Return the revision of the tables, empty if there are none."""
    table = work.tables.version
    if not inspect(work.connection).has_table(table.name, schema=table.schema):
        return ""
    row = work.connection.execute(work.say.upkeep.revision).first()
    return row[0] if row is not None else ""


def check_revision(work: Work) -> None:
    """Return if the tables are new enough; UNAVAILABLE says what to run."""
    found = found_revision(work)
    if is_older(found):
        there = f"has tables of revision {found}" if found else "has no tables"
        raise OldTablesError(
            f"the database {there}, and revision {NEEDED} is needed: run `smg-admin db migrate`"
        )


def create_tables(work: Work) -> bool:
    """Make all tables as they are to be today, in a database that has none; return whether they are there.

    Where there are some, of another gateway or of before, it takes steps to get from them to ours.
    """
    if found_revision(work):
        return not is_older(found_revision(work))
    there = inspect(work.connection)
    if any(
        there.has_table(table.name, schema=table.schema) for table in work.tables.by_name.values()
    ):
        return False
    work.tables.metadata.create_all(work.connection, checkfirst=False)
    work.tables.version.create(work.connection)
    work.connection.execute(work.say.upkeep.stamp, {"version_num": NEEDED})
    return True


def ping(work: Work) -> None:
    """Return if this database can be written; a transaction has been begun for it, and that says it all in SQLite."""
    if work.say.dialect == "postgresql":
        if work.connection.execute(READ_ONLY).scalar_one():
            raise StoreError(StoreErrorKind.UNAVAILABLE, "the database takes no writes")
    else:
        work.connection.execute(work.say.upkeep.ping)
