"""Housekeeping statements: what is over, and how much there is; the only ones about all tenants."""

from typing import Any, Final

from sqlalchemy import (
    Label,
    Select,
    Table,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
)

from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.statements.expressions import given, now, own, small


class UpkeepStatements:
    """Statements of purging and counting; what is to be removed is found for
    all, and removed by its tenant.
    """

    def __init__(self, tables: Tables, dialect: str) -> None:
        keys, events, items = tables.keys, tables.events, tables.items
        self.expired_keys = _expired(dialect, keys, "idem_key")
        self.expired_events = _expired(dialect, events, "response_id", "first_seq")
        self.expired_responses = _expired(dialect, tables.responses, "id")
        self.expired_items = _expired(dialect, items, "id")
        self.expired_conversations = _expired(dialect, tables.conversations, "id")
        self.drop_key = delete(keys).where(own(keys), given(keys.c.idem_key))
        self.drop_events = delete(events).where(
            own(events), given(events.c.response_id), events.c.first_seq == small("at_seq")
        )
        self.drop_item = delete(items).where(own(items), given(items.c.id))
        self.count_conversations = select(func.count()).select_from(tables.conversations)
        self.count_items = select(func.count()).select_from(items)
        self.count_responses = select(func.count()).select_from(tables.responses)
        self.tenant_figures = select(
            _counted(tables.conversations, "conversations"),
            _counted(items, "items"),
            _counted(tables.responses, "responses"),
            _sampled(items, "items_bytes"),
            _sampled(tables.responses, "responses_bytes"),
        )
        """About one tenant; never more than so many rows are looked at, and most of them in an index only."""
        self.revision = select(tables.version.c.version_num)
        self.stamp = insert(tables.version)
        self.ping: Select[tuple[object]] = select(literal_column("1"))


def _counted(table: Table, name: str) -> Label[int]:
    some = select(table.c.id).where(own(table)).limit(small("counted_max")).subquery()
    return select(func.count()).select_from(some).scalar_subquery().label(name)


def _sampled(table: Table, name: str) -> Label[int]:
    some = (
        select(table.c.document_bytes)
        .where(own(table))
        .order_by(table.c.id.desc())
        .limit(small("sampled_max"))
        .subquery()
    )
    size = func.coalesce(func.sum(some.c.document_bytes), 0)
    return select(size).scalar_subquery().label(name)


def _expired(dialect: str, table: Table, key: str, *more: str) -> Select[Any]:
    """The oldest that are over; what another node is just removing is left
    to it, where that can be said.
    """
    expires = table.c.expires_at
    oldest = (
        select(table.c.tenant, table.c[key].label("key"), *(table.c[name] for name in more))
        .where(expires <= now())
        .order_by(expires)
        .limit(small("up_to"))
    )
    # Oracle locks no rows that were counted off.
    return oldest if dialect == "oracle" else oldest.with_for_update(skip_locked=True)


READ_ONLY: Final = text(
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
)
ESTIMATE: Final = text(
    "SELECT coalesce(reltuples, -1) AS guess, pg_total_relation_size(oid) AS size FROM pg_class WHERE oid ="
    " to_regclass(:name)"
)
