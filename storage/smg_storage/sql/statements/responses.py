"""Statements about responses, and the chains they make."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Select,
    and_,
    cast,
    delete,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from smg_storage.sql.schema.naming import LOGICAL
from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.schema.types import UtcTime
from smg_storage.sql.statements.expressions import (
    alive,
    among,
    given,
    insert_missing,
    new,
    number,
    own,
    shown,
    small,
)

KEPT_BY_ROW: Final = (
    "tenant",
    "id",
    "owner_node",
    "lease_token",
    "lease_until",
    "cancel_requested",
    "version",
)
"""Columns that a turn does not change when it is written over a response that was begun."""
PATCHED: Final = ("status", "completed_at", "expires_at")


class ResponseStatements:
    """Statements about responses, and about where items are in them."""

    def __init__(self, tables: Tables, dialect: str) -> None:
        table, places, events = tables.responses, tables.locations, tables.events
        this = and_(own(table), given(table.c.id))
        all_of_it = shown(tables, "responses")
        self.get = select(*all_of_it).where(this, alive(table))
        self.is_there = select(table.c.id).where(this, alive(table))
        self.lock = (
            select(*all_of_it)
            .where(own(table), among(table.c.id))
            .order_by(table.c.id)
            .with_for_update()
        )
        self.insert = insert(table)
        self.replace = _update(
            tables,
            [key for key in LOGICAL["responses"] if key in table.c and key not in KEPT_BY_ROW],
        )
        self.patch = _update(tables, [key for key in PATCHED if key in table.c])
        self.patch_document = _update(
            tables,
            [key for key in (*PATCHED, "raw_response", "document_bytes") if key in table.c],
        )
        self.forget = (
            delete(events).where(own(events), given(events.c.response_id)),
            delete(places).where(own(places), given(places.c.response_id)),
            delete(table).where(this),
        )
        self.locate = insert_missing(places, dialect)
        self.located = select(places.c.item_id).where(own(places), among(places.c.item_id))
        self.chain = _chain(tables)
        whose = and_(own(table), given(table.c.safety_identifier, "identifier"))
        self.anchor = select(table.c.created_at, table.c.id).where(
            whose, given(table.c.id), alive(table)
        )
        self.page: Mapping[tuple[bool, bool], Select[Any]] = {
            (newest, after): _page(tables, newest=newest, after=after)
            for newest in (False, True)
            for after in (False, True)
        }
        """By whether the newest come first, and whether it begins behind another one."""
        self.made_for = select(table.c.id, table.c.expires_at).where(whose).limit(small("up_to"))


def _update(tables: Tables, keys: list[str]) -> Any:
    table = tables.responses
    return (
        update(table)
        .where(own(table), given(table.c.id))
        .values(
            {key: new(f"new_{key}", table.c[key].type) for key in keys}
            | {"version": table.c.version + 1}
        )
    )


def _page(tables: Tables, *, newest: bool, after: bool) -> Select[Any]:
    table = tables.responses
    created, key = table.c.created_at, table.c.id
    asked = select(*shown(tables, "responses")).where(
        own(table), given(table.c.safety_identifier, "identifier"), alive(table)
    )
    if after:
        since = new("since", UtcTime())
        behind = key < new("after", key.type) if newest else key > new("after", key.type)
        beyond = created < since if newest else created > since
        asked = asked.where(or_(beyond, and_(created == since, behind)))
    order = (created.desc(), key.desc()) if newest else (created, key)
    return asked.order_by(*order).limit(small("up_to"))


def _chain(tables: Tables) -> Select[Any]:
    """A response and what it continues, the newest first.

    The way back goes over narrow rows; documents are fetched for those within the limits. One row more is walked than
    is fetched, so that a limit and an ancestor that is not there can be told apart.
    """
    table = tables.responses
    first = (
        select(
            table.c.id.label("link"),
            table.c.previous_response_id.label("previous"),
            cast(table.c.document_bytes, BigInteger).label("total"),
            literal_column("0", BigInteger()).label("hop"),
        )
        .where(own(table), given(table.c.id), alive(table))
        .cte("chain", recursive=True)
    )
    parent = table.alias("parent")
    chain = first.union_all(
        select(
            parent.c.id,
            parent.c.previous_response_id,
            cast(first.c.total + parent.c.document_bytes, BigInteger),
            first.c.hop + literal_column("1", BigInteger()),
        )
        .join_from(first, parent, and_(own(parent), parent.c.id == first.c.previous))
        .where(
            alive(parent),
            first.c.hop < small("items_max"),
            first.c.total <= number("bytes_max"),
        )
    )
    within = and_(
        own(table),
        table.c.id == chain.c.link,
        chain.c.hop < small("items_max"),
        or_(chain.c.total <= number("bytes_max"), chain.c.hop == 0),
    )
    return (
        select(chain.c.link, *shown(tables, "responses"))
        .select_from(chain.outerjoin(table, within))
        .order_by(chain.c.hop)
    )
