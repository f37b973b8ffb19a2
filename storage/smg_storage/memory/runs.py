"""Runs in memory: leases of responses, their event logs, and the keys of clients."""

from collections.abc import Sequence

import msgspec

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.responses import MemoryResponses
from smg_storage.memory.row_store import home_of
from smg_storage.memory.rows import ROW_BYTES, Key, Kind, LogRow, ResponseRow
from smg_storage.memory.write_equality import cost
from smg_storage.records import (
    EVENTS_BYTES_MAX,
    NEVER_US,
    Access,
    EventBlob,
    Idempotency,
    KeyState,
    Lease,
    Reserved,
    StoredResponse,
)


class MemoryRuns(MemoryResponses):
    """Runs of a store in memory."""

    async def claim_run(
        self, access: Access, response_id: str, owner: str, *, now_us: int, until_us: int
    ) -> Lease | None:
        """Become the owner of a response that is not final and has none, or one whose lease is over; None else."""
        key = access.tenant, response_id
        row = self._response(key, self._begin())
        if row is None or row.record.status.is_final or row.record.lease_until_us > now_us:
            return None
        return self._own(key, row, owner, row.record.lease_token + 1, until_us)

    async def renew_run(self, access: Access, lease: Lease, *, until_us: int) -> Lease:
        """Stay the owner, and learn whether a cancel was requested; CONFLICT for a
        node that is no longer the owner.
        """
        key = access.tenant, lease.response_id
        row = self._owned(key, lease)
        if row is None or row.record.status.is_final:
            raise _not_held(lease.response_id)
        return self._own(key, row, lease.owner, lease.token, until_us)

    async def release_run(self, access: Access, lease: Lease) -> None:
        """Be the owner no longer; nothing happens if this one is not."""
        key = access.tenant, lease.response_id
        row = self._owned(key, lease)
        if row is not None and not row.record.status.is_final:
            self._own(key, row, "", lease.token, 0)

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Sequence[Lease]:
        """Return background responses of all tenants, not final, whose lease is over: the oldest first."""
        seen_us = self._begin()
        found: list[Lease] = []
        for until_us, tenant, response_id in self._shelf.runs.ascending():
            if until_us > now_us or len(found) >= limit:
                break
            row = self._response((tenant, response_id), seen_us)
            if row is not None:
                found.append(_lease(tenant, row.record))
        return found

    async def request_cancel(self, access: Access, response_id: str) -> StoredResponse | None:
        """Note that a cancel was requested, unless it is final; return it as
        it is, None if it is not there.
        """
        key = access.tenant, response_id
        row = self._response(key, self._begin())
        if row is None:
            return None
        if not row.record.status.is_final and not row.record.cancel_requested:
            changed = msgspec.structs.replace(
                row.record, cancel_requested=True, version=row.record.version + 1
            )
            self._change(key, changed)
        return row.record

    async def append_events(
        self,
        access: Access,
        response_id: str,
        blobs: Sequence[EventBlob],
        *,
        expires_us: int,
        token: int = 0,
    ) -> None:
        """Keep parts of a stream, all or none; one whose first number is there already stays as it was."""
        now_us = self._begin()
        key = access.tenant, response_id
        held = self._response(key, now_us) if token else None
        if token and (
            held is None or held.record.status.is_final or held.record.lease_token != token
        ):
            raise _not_held(response_id)
        if not blobs:
            return
        row = self._log(key, now_us)
        known = row.blobs if row is not None else {}
        new = {blob.first: blob for blob in reversed(blobs) if blob.first not in known}
        size = sum(cost(blob.payload) for blob in new.values())
        self._shelf.make_room(now_us, [home_of(key)], bytes_more=size + cost())
        if row is None:
            self._shelf.forget(Kind.LOG, key)
            row = LogRow(home_of(key), cost(), expires_us)
            self._shelf.add(Kind.LOG, key, row)
        self._shelf.weigh(row, size)
        row.blobs.update(new)
        for first in sorted(new):
            row.firsts.add(first)

    async def read_events(
        self,
        access: Access,
        response_id: str,
        *,
        after: int,
        limit: int,
        bytes_max: int = EVENTS_BYTES_MAX,
    ) -> Sequence[EventBlob]:
        """Return the parts that have events after that number (-1: all), in order, up to so many and so long."""
        row = self._log((access.tenant, response_id), self._begin())
        if row is None:
            return []
        # The one before the first that begins later may still go on after that number.
        before = next(row.firsts.descending(after + 1), None)
        found: list[EventBlob] = []
        length = 0
        for first in row.firsts.ascending(before - 1 if before is not None else after):
            blob = row.blobs[first]
            if blob.last > after:
                length += len(blob.payload)
                if len(found) >= limit or (found and length > bytes_max):
                    break
                found.append(blob)
        return found

    async def reserve_key(
        self, access: Access, key: Idempotency, response_id: str, *, now_us: int
    ) -> Reserved:
        """Reserve a key for a response, or learn that it had been, for the same request or for another one."""
        seen_us = self._begin()
        held = self._key((access.tenant, key.key), now_us)
        if held is None:
            home = home_of((access.tenant, response_id))
            self._shelf.make_room(seen_us, [home], bytes_more=ROW_BYTES)
            self._keep_key(access.tenant, key, response_id)
            return Reserved(KeyState.NEW)
        if held.record.digest != key.digest:
            return Reserved(KeyState.DIFFERENT)
        there = self._response((access.tenant, held.response_id), seen_us) is not None
        if there:
            return Reserved(KeyState.SAME, held.response_id)
        own = held.response_id == response_id
        return Reserved(KeyState.NEW if own else KeyState.SAME)

    async def release_key(self, access: Access, key: str, response_id: str) -> None:
        """Give a key back, so that it is new again; nothing happens if it stands for another response."""
        self._begin()
        held = self._shelf.keys.get((access.tenant, key))
        if held is not None and held.response_id == response_id:
            self._shelf.forget(Kind.KEY, (access.tenant, key))

    def _owned(self, key: Key, lease: Lease) -> ResponseRow | None:
        row = self._response(key, self._begin())
        if row is None or (row.record.owner, row.record.lease_token) != (lease.owner, lease.token):
            return None
        return row

    def _own(self, key: Key, row: ResponseRow, owner: str, token: int, until_us: int) -> Lease:
        changed = msgspec.structs.replace(
            row.record,
            owner=owner,
            lease_token=token,
            lease_until_us=until_us,
            version=row.record.version + 1,
        )
        self._change(key, changed)
        return _lease(key[0], changed)

    def _log(self, key: Key, now_us: int) -> LogRow | None:
        row = self._shelf.logs.get(key)
        if row is None or (row.expires_us != NEVER_US and row.expires_us <= now_us):
            return None
        return row


def _not_held(response_id: str) -> StoreError:
    return StoreError(StoreErrorKind.CONFLICT, f"response {response_id} is run by somebody else")


def _lease(tenant: str, record: StoredResponse) -> Lease:
    return Lease(
        tenant,
        record.id,
        record.owner,
        record.lease_token,
        record.lease_until_us,
        cancel_requested=record.cancel_requested,
    )
