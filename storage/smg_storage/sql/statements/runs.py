"""Statements about who is at which response, what its stream said, and keys of the client's choice."""

from sqlalchemy import and_, insert, literal_column, nulls_first, or_, select, update

from smg_storage.sql.statements.parts import (
    OPEN,
    alive,
    among,
    given,
    insert_missing,
    new,
    now,
    number,
    own,
    shown,
    small,
    yes,
)
from smg_storage.sql.tables import Tables
from smg_storage.sql.types import UtcTime, Word, octets


class RunStatements:
    """Of leases."""

    def __init__(self, tables: Tables) -> None:
        table = tables.responses
        this = and_(own(table), given(table.c.id))
        still_open = table.c.status.in_([literal_column(f"'{status}'") for status in OPEN])
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
            .where(mine, alive(table))
            .values(lease_until=new("new_until", lease.type))
            .returning(table.c.cancel_requested)
        )
        self.release = (
            update(table)
            .where(mine)
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
    """Of what streams said."""

    def __init__(self, tables: Tables, dialect: str) -> None:
        events = tables.events
        self.append = insert_missing(events, dialect)
        self.appended = select(events.c.first_seq).where(
            own(events),
            given(events.c.response_id),
            events.c.first_seq >= small("from_seq"),
            events.c.first_seq <= small("to_seq"),
        )
        self.read = (
            select(events.c.first_seq, events.c.last_seq, events.c.payload)
            .where(
                own(events),
                given(events.c.response_id),
                events.c.last_seq > small("after"),
                or_(events.c.expires_at.is_(None), events.c.expires_at > now()),
            )
            .order_by(events.c.first_seq)
            .limit(small("up_to"))
        )


class KeyStatements:
    """Of keys that make a request happen once."""

    def __init__(self, tables: Tables) -> None:
        table = tables.keys
        self.lock = (
            select(*shown(tables, "idempotency_keys"))
            .where(own(table), among(table.c.idem_key))
            .order_by(table.c.idem_key)
            .with_for_update()
        )
        self.insert = insert(table)
        self.replace = (
            update(table)
            .where(own(table), given(table.c.idem_key))
            .values(
                digest=new("new_digest", octets(16)),
                response_id=new("new_response_id", table.c.response_id.type),
                expires_at=new("new_expires_at", table.c.expires_at.type),
            )
        )
