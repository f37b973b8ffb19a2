"""Operations on runs: leases of responses, their event logs, and the keys of clients."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    EventBlob,
    Idempotency,
    KeyState,
    Lease,
    Reserved,
    StoredResponse,
)
from smg_storage.sql.operations.responses import get_response
from smg_storage.sql.schema.row_mapping import check_size, of_tenant
from smg_storage.sql.unit_of_work import Work


def claim_run(work: Work, response_id: str, owner: str, now_us: int, until_us: int) -> Lease | None:
    """Become the owner, if there is none."""
    row = work.row(
        work.say.runs.claim,
        of_id=response_id,
        new_owner=owner,
        new_until=until_us,
        as_of=now_us,
    )
    if row is None:
        return None
    return Lease(
        tenant=work.tenant,
        response_id=response_id,
        owner=owner,
        token=row.lease_token,
        until_us=until_us,
        cancel_requested=bool(row.cancel_requested),
    )


def renew_run(work: Work, lease: Lease, until_us: int) -> Lease:
    """Stay the owner."""
    row = work.row(
        work.say.runs.renew,
        of_id=lease.response_id,
        held_token=lease.token,
        held_by=lease.owner,
        new_until=until_us,
    )
    if row is None:
        message = f"response {lease.response_id} has another owner, or is not there"
        raise StoreError(StoreErrorKind.CONFLICT, message)
    return Lease(
        tenant=work.tenant,
        response_id=lease.response_id,
        owner=lease.owner,
        token=lease.token,
        until_us=until_us,
        cancel_requested=bool(row.cancel_requested),
    )


def release_run(work: Work, lease: Lease) -> None:
    """Be the owner no longer."""
    work.change(
        work.say.runs.release,
        of_id=lease.response_id,
        held_token=lease.token,
        held_by=lease.owner,
        new_owner="",
        new_until=0,
    )


def orphan_runs(work: Work, now_us: int, limit: int) -> Sequence[Lease]:
    """Read the runs of all tenants whose owners are gone."""
    rows = work.rows(work.say.runs.orphans, as_of=now_us, up_to=limit)
    return tuple(
        Lease(
            tenant=row.tenant,
            response_id=row.id,
            owner=row.owner_node,
            token=row.lease_token,
            until_us=row.lease_until,
            cancel_requested=bool(row.cancel_requested),
        )
        for row in rows
    )


def request_cancel(work: Work, response_id: str) -> StoredResponse | None:
    """Note that it is to be cancelled, once."""
    found = get_response(work, response_id)
    if found is None or found.status.is_final or found.cancel_requested:
        return found
    work.change(work.say.runs.cancel, of_id=response_id)
    return get_response(work, response_id)


def append_events(
    work: Work, response_id: str, blobs: Sequence[EventBlob], expires_us: int, token: int
) -> None:
    """Insert the blobs that are not there, if the response is held under that token."""
    for blob in blobs:
        check_size(blob.payload)
    log = _log(work, response_id, token)
    if log is not None and 0 < log.ends <= work.now_us:
        work.change(work.say.events.forget, of_id=response_id)
        log = None
    known: set[int] = set()
    if work.careful and blobs:
        span = {"from_seq": min(b.first for b in blobs), "to_seq": max(b.first for b in blobs)}
        rows = work.rows(work.say.events.appended, of_id=response_id, **span)
        known = {row.first_seq for row in rows}
    new = {blob.first: blob for blob in reversed(blobs) if blob.first not in known}
    values = [
        {
            "response_id": response_id,
            "first_seq": blob.first,
            "last_seq": blob.last,
            "payload": blob.payload,
            "expires_at": log.ends if log is not None else expires_us,
        }
        for _, blob in sorted(new.items())
    ]
    work.change_all(
        work.say.events.append, of_tenant(work.tables, "response_events", work.tenant, values)
    )


def _log(work: Work, response_id: str, token: int) -> Row[Any] | None:
    """Return where a log begins and ends, None if there is none.

    With a token, the response is held from here to the end of the transaction; CONFLICT if it is
    another's.
    """
    if not token:
        return work.row(work.say.events.log, of_id=response_id)
    row = work.row(work.say.events.held, of_id=response_id, held_token=token)
    if row is None:
        message = f"response {response_id} has another owner, is final, or is not there"
        raise StoreError(StoreErrorKind.CONFLICT, message)
    return row if row.begins is not None else None


def read_events(
    work: Work, response_id: str, after: int, limit: int, bytes_max: int
) -> Sequence[EventBlob]:
    """Read blobs with later events, by number and bytes."""
    rows = work.rows(
        work.say.events.read, of_id=response_id, after=after, up_to=limit, bytes_max=bytes_max
    )
    return tuple(EventBlob(row.first_seq, row.last_seq, row.payload) for row in rows)


def reserve_key(work: Work, key: Idempotency, response_id: str, now_us: int) -> Reserved:
    """Insert a key, or find what it stands for."""
    values = {
        "idem_key": key.key,
        "digest": key.digest,
        "response_id": response_id,
        "expires_at": key.expires_us,
    }
    row = next(work.rows_of(work.say.keys.lock, [key.key]), None) if work.careful else None
    if row is None:
        rows = of_tenant(work.tables, "idempotency_keys", work.tenant, [values])
        work.change_all(work.say.keys.insert, rows)
        return Reserved(KeyState.NEW, response_id)
    if 0 < row.expires_at <= now_us:
        new = {f"new_{name}": value for name, value in values.items() if name != "idem_key"}
        work.change(work.say.keys.replace, of_id=key.key, **new)
        return Reserved(KeyState.NEW, response_id)
    there = _is_there(work, row.response_id)
    if row.digest != key.digest:
        return Reserved(KeyState.DIFFERENT, row.response_id if there else "")
    if not there and row.response_id == response_id:
        return Reserved(KeyState.NEW, response_id)
    return Reserved(KeyState.SAME, row.response_id if there else "")


def release_key(work: Work, key: str, response_id: str) -> None:
    """Delete a key, if it stands for this response."""
    work.change(work.say.keys.drop, of_id=key, held_for=response_id)


def _is_there(work: Work, response_id: str) -> bool:
    return work.row(work.say.responses.is_there, of_id=response_id) is not None
