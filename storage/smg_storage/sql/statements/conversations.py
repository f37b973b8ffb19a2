"""Statements about conversations, their items, and which item is in which."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Select,
    and_,
    cast,
    delete,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    type_coerce,
    union_all,
    update,
)

from smg_storage.sql.schema.naming import LOGICAL
from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.schema.types import Document, UtcTime, Word
from smg_storage.sql.statements.expressions import (
    alive,
    always,
    among,
    given,
    new,
    number,
    own,
    shown,
    small,
)


class ConversationStatements:
    """Statements about conversations themselves."""

    def __init__(self, tables: Tables) -> None:
        table, links, items = tables.conversations, tables.links, tables.items
        this = and_(own(table), given(table.c.id))
        self.get = select(*shown(tables, "conversations")).where(this, alive(table))
        self.lock = (
            select(*shown(tables, "conversations"))
            .where(own(table), among(table.c.id))
            .order_by(table.c.id)
            .with_for_update()
        )
        self.insert = insert(table)
        self.describe = (
            update(table)
            .where(this)
            .values(
                metadata=new("new_metadata", Document()),
                updated_at=new("new_updated", UtcTime()),
                version=table.c.version + 1,
            )
        )
        self.grow = (
            update(table)
            .where(this)
            .values(
                version=small("new_version"),
                next_position=number("new_position"),
                updated_at=new("new_updated", UtcTime()),
                expires_at=new("new_expires", table.c.expires_at.type),
            )
        )
        linked = select(links.c.item_id).where(own(links), given(links.c.conversation_id))
        self.forget = (
            update(items).where(own(items), items.c.id.in_(linked)).values(refs=items.c.refs - 1),
            delete(items).where(own(items), items.c.id.in_(linked), items.c.refs <= 0),
            delete(links).where(own(links), given(links.c.conversation_id)),
            delete(table).where(this),
        )
        """In this order: they find what to do through each other's rows."""


class ItemStatements:
    """Statements about items, and about their places in conversations."""

    def __init__(self, tables: Tables) -> None:
        table, links = tables.items, tables.links
        this = and_(own(table), given(table.c.id))
        some = select(*shown(tables, "conversation_items")).where(own(table), among(table.c.id))
        self.lock = some.order_by(table.c.id).with_for_update()
        self.insert = insert(table)
        self.replace = (
            update(table)
            .where(this)
            .values(
                {
                    key: new(f"new_{key}", table.c[key].type)
                    for key in LOGICAL["conversation_items"]
                    if key in table.c and key not in ("tenant", "id", "refs")
                }
            )
        )
        self.use = update(table).where(this).values(refs=table.c.refs + 1)
        self.leave = update(table).where(this).values(refs=table.c.refs - 1)
        self.drop_unused = delete(table).where(this, table.c.refs <= 0)
        self.link = insert(links)
        self.linked = select(links.c.conversation_id, links.c.item_id, links.c.position).where(
            own(links),
            among(links.c.conversation_id, "conversation_ids"),
            among(links.c.item_id),
        )
        self.unlink = delete(links).where(
            own(links), given(links.c.conversation_id, "of_conversation"), given(links.c.item_id)
        )
        self.is_linked = (
            select(links.c.position)
            .join_from(links, table, and_(own(table), table.c.id == links.c.item_id))
            .join(
                tables.conversations,
                and_(
                    own(tables.conversations),
                    tables.conversations.c.id == links.c.conversation_id,
                ),
            )
            .where(
                own(links),
                given(links.c.conversation_id, "of_conversation"),
                given(links.c.item_id),
                alive(table),
                alive(tables.conversations),
            )
        )
        self.find = _find(tables)
        self.page: Mapping[tuple[bool, bool], Select[Any]] = {
            (newest, after): _page(tables, newest=newest, after=after)
            for newest in (False, True)
            for after in (False, True)
        }
        """By whether the newest come first, and whether it begins behind another one."""
        self.newest = _newest(tables)


def _here(tables: Tables, *more: Any) -> Any:
    """The conversation itself: one row even if the rest has none, and no row if there is no such conversation."""
    table = tables.conversations
    return (
        select(table.c.id.label("found"), *more)
        .where(own(table), given(table.c.id), alive(table))
        .subquery("here")
    )


def _members(tables: Tables) -> tuple[Any, Any]:
    items, links = tables.items, tables.links
    joined = links.join(items, and_(own(items), items.c.id == links.c.item_id))
    return joined, and_(own(links), given(links.c.conversation_id), alive(items))


def _page(tables: Tables, *, newest: bool, after: bool) -> Select[Any]:
    links = tables.links
    position = links.c.position
    anchors = links.alias("anchors")
    anchor = (
        select(anchors.c.position)
        .where(
            anchors.c.tenant == own(links).right,
            given(anchors.c.conversation_id),
            given(anchors.c.item_id, "after"),
        )
        .scalar_subquery()
    )
    here = _here(tables, *([anchor.label("anchor")] if after else []))
    joined, inside = _members(tables)
    rows = select(position.label("position"), *shown(tables, "conversation_items")).select_from(
        joined
    )
    rows = rows.where(inside)
    if after:
        rows = rows.where(position < anchor if newest else position > anchor)
    part = (
        rows.order_by(position.desc() if newest else position)
        .limit(small("up_to"))
        .subquery("part")
    )
    order = part.c.position.desc() if newest else part.c.position
    return select(here, part).select_from(here.outerjoin(part, always())).order_by(order)


def _newest(tables: Tables) -> Select[Any]:
    """The newest items by number and by bytes: sums over narrow rows first, documents for those that are left."""
    items, links = tables.items, tables.links
    joined, inside = _members(tables)
    lately = (
        select(
            links.c.position.label("position"),
            links.c.item_id.label("item_id"),
            cast(items.c.document_bytes, BigInteger).label("size"),
        )
        .select_from(joined)
        .where(inside)
        .order_by(links.c.position.desc())
        .limit(small("up_to"))
        .subquery("lately")
    )
    falling = lately.c.position.desc()
    summed = select(
        lately.c.position,
        lately.c.item_id,
        func.sum(lately.c.size).over(order_by=falling, rows=(None, 0)).label("total"),
        func.row_number().over(order_by=falling).label("place"),
        func.count().over().label("known"),
    ).subquery("summed")
    part = (
        select(summed.c.position, summed.c.known, *shown(tables, "conversation_items"))
        .join_from(summed, items, and_(own(items), items.c.id == summed.c.item_id))
        .where(
            summed.c.place <= small("items_max"),
            or_(summed.c.total <= number("bytes_max"), summed.c.place == 1),
        )
        .subquery("part")
    )
    here = _here(tables)
    joined_part = here.outerjoin(part, always())
    return select(here, part).select_from(joined_part).order_by(part.c.position.desc())


def _find(tables: Tables) -> Select[Any]:
    """Items by id, with a row of their own or inside a response, whose documents come once each."""
    items, places, responses = tables.items, tables.locations, tables.responses
    nothing = type_coerce(null(), Word())
    keys = union_all(
        select(
            items.c.id.label("item"),
            nothing.label("inside"),
            literal_column("0").label("side"),
            literal_column("0").label("idx"),
            literal_column("0").label("place"),
        ).where(own(items), among(items.c.id), alive(items)),
        select(
            places.c.item_id,
            places.c.response_id,
            places.c.side,
            places.c.idx,
            func.row_number().over(partition_by=places.c.response_id, order_by=places.c.item_id),
        ).where(own(places), among(places.c.item_id)),
    ).subquery("keys")
    first = and_(
        own(responses), responses.c.id == keys.c.inside, keys.c.place == 1, alive(responses)
    )
    return select(
        keys.c.item,
        keys.c.inside,
        keys.c.side,
        keys.c.idx,
        *shown(tables, "conversation_items"),
        responses.c.id.label("response"),
        responses.c.input,
        responses.c.raw_response,
        responses.c.created_at.label("answered_at"),
        responses.c.expires_at.label("answer_expires_at"),
    ).select_from(
        keys.outerjoin(
            items, and_(own(items), items.c.id == keys.c.item, keys.c.place == 0)
        ).outerjoin(responses, first)
    )
