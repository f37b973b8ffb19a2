"""Statements about runs: leases of responses, events of their streams, and keys of clients."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ScalarSelect,
    Select,
    Table,
    and_,
    cast,
    delete,
    func,
    insert,
    literal_column,
    nulls_first,
    or_,
    select,
    update,
)

from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.schema.types import UtcTime, Word, octets
from smg_storage.sql.statements.expressions import (
    OPEN,
    alive,
    among,
    given,
    insert_missing,
    new,
    number,
    own,
    shown,
    small,
    yes,
)


class RunStatements:
    """Statements about leases."""

    def __init__(self, tables: Tables) -> None:
        table = tables.responses
        this = and_(own(table), given(table.c.id))
        still_open = _is_open(table)
        lease = table.c.lease_until
        free = or_(lease.is_(None), lease <= new("as_of", UtcTime()))
        mine = and_(
            this,
            table.c.lease_token == number("held_token"),
            given(table.c.owner_node, "held_by"),
        )
        self.claim = (
            update(table)
            .where(this, still_open, free, alive(table))
            .values(
                owner_node=new("new_owner", table.c.owner_node.type),
                lease_token=table.c.lease_token + 1,
                lease_until=new("new_until", lease.type),
                version=table.c.version + 1,
            )
            .returning(table.c.lease_token, table.c.cancel_requested)
        )
        self.renew = (
            update(table)
            .where(mine, still_open, alive(table))
            .values(lease_until=new("new_until", lease.type))
            .returning(table.c.cancel_requested)
        )
        self.release = (
            update(table)
            .where(mine, still_open)
            .values(owner_node=new("new_owner", Word()), lease_until=new("new_until", lease.type))
        )
        self.orphans = (
            select(
                table.c.tenant,
                table.c.id,
                table.c.owner_node,
                table.c.lease_token,
                lease.label("lease_until"),
                table.c.cancel_requested,
            )
            .where(yes(table.c.background), still_open, free, alive(table))
            .order_by(nulls_first(lease), table.c.created_at, table.c.id)
            .limit(small("up_to"))
        )
        """Of all tenants: whoever adopts them asks for each by its own."""
        self.cancel = (
            update(table)
            .where(this, still_open)
            .values(cancel_requested=literal_column("1"), version=table.c.version + 1)
        )


class EventStatements:
    """Statements about events of streams."""

    def __init__(self, tables: Tables, dialect: str) -> None:
        events, responses = tables.events, tables.responses
        this = and_(own(events), given(events.c.response_id))
        begin = _edge(tables, dialect, newest=False)
        end = select(events.c.expires_at).where(this, events.c.first_seq == begin)
        self.log = select(
            events.c.first_seq.label("begins"), events.c.expires_at.label("ends")
        ).where(this, events.c.first_seq == begin)
        """Where what is there begins, and when it is over: as one, so all parts have the time of the first."""
        self.held = (
            select(begin.label("begins"), end.scalar_subquery().label("ends"))
            .select_from(responses)
            .where(
                own(responses),
                given(responses.c.id),
                responses.c.lease_token == number("held_token"),
                _is_open(responses),
                alive(responses),
            )
            .with_for_update()
        )
        """The same, for who holds the response, and goes on holding it until the end of the transaction."""
        self.forget = delete(events).where(this)
        self.append = insert_missing(events, dialect)
        self.appended = select(events.c.first_seq).where(
            own(events),
            given(events.c.response_id),
            events.c.first_seq >= small("from_seq"),
            events.c.first_seq <= small("to_seq"),
        )
        self.read = _read(tables, dialect)


def _is_open(table: Table) -> ColumnElement[bool]:
    return table.c.status.in_([literal_column(f"'{status}'") for status in OPEN])


def _edge(tables: Tables, dialect: str, *, newest: bool) -> ScalarSelect[int]:
    """Where the oldest part of a log begins, or the newest of those up to a number, by one look into an index.

    PostgreSQL may read all of a log to find the least of it, before it has counted how long logs are. Oracle cannot
    have a limit beside a lock.
    """
    edges = tables.events.alias("edges")
    first = edges.c.first_seq
    mine = and_(own(edges), given(edges.c.response_id))
    if newest:
        mine = and_(mine, first <= small("after"))
    if dialect == "oracle":
        return select((func.max if newest else func.min)(first)).where(mine).scalar_subquery()
    order = first.desc() if newest else first
    return select(first).where(mine).order_by(order).limit(literal_column("1")).scalar_subquery()


def _length(payload: ColumnElement[Any], dialect: str) -> ColumnElement[int]:
    names: Mapping[str, Any] = {
        "sqlite": func.length,
        "oracle": func.dbms_lob.getlength,
        "postgresql": func.octet_length,
    }
    return cast(names[dialect](payload), BigInteger)


def _read(tables: Tables, dialect: str) -> Select[Any]:
    """Parts with later events, by number and by bytes."""
    events = tables.events
    # The one before the first that begins later may still go on after that number; those before it are not looked at.
    since = func.coalesce(_edge(tables, dialect, newest=True), small("after"))
    part = (
        select(
            events.c.first_seq,
            events.c.last_seq,
            events.c.payload,
            _length(events.c.payload, dialect).label("size"),
        )
        .where(
            own(events),
            given(events.c.response_id),
            events.c.first_seq >= since,
            events.c.last_seq > small("after"),
            alive(events),
        )
        .order_by(events.c.first_seq)
        .limit(small("up_to"))
        .subquery("part")
    )
    rising = part.c.first_seq
    summed = select(
        part.c.first_seq,
        part.c.last_seq,
        part.c.payload,
        func.sum(part.c.size).over(order_by=rising, rows=(None, 0)).label("total"),
        func.row_number().over(order_by=rising).label("place"),
    ).subquery("summed")
    return (
        select(summed.c.first_seq, summed.c.last_seq, summed.c.payload)
        .where(or_(summed.c.total <= number("bytes_max"), summed.c.place == 1))
        .order_by(summed.c.first_seq)
    )


class KeyStatements:
    """Statements about keys that make a request happen once."""

    def __init__(self, tables: Tables) -> None:
        table = tables.keys
        self.lock = (
            select(*shown(tables, "idempotency_keys"))
            .where(own(table), among(table.c.idem_key))
            .order_by(table.c.idem_key)
            .with_for_update()
        )
        self.insert = insert(table)
        self.drop = delete(table).where(
            own(table), given(table.c.idem_key), given(table.c.response_id, "held_for")
        )
        self.replace = (
            update(table)
            .where(own(table), given(table.c.idem_key))
            .values(
                digest=new("new_digest", octets(16)),
                response_id=new("new_response_id", table.c.response_id.type),
                expires_at=new("new_expires_at", table.c.expires_at.type),
            )
        )
