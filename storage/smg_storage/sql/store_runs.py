"""Store part of runs, in tables: leases of responses, their event logs, and keys of clients."""

from collections.abc import Sequence

from smg_storage.records import (
    EVENTS_BYTES_MAX,
    Access,
    EventBlob,
    Idempotency,
    Lease,
    Reserved,
    StoredResponse,
)
from smg_storage.sql.executor import Executor
from smg_storage.sql.operations import runs


class SqlRuns:
    """Leases, events and keys, in tables."""

    def __init__(self, door: Executor) -> None:
        self._door = door

    async def claim_run(
        self, access: Access, response_id: str, owner: str, *, now_us: int, until_us: int
    ) -> Lease | None:
        """Become the owner of a response that has none."""
        return await self._door.write(
            access, lambda work: runs.claim_run(work, response_id, owner, now_us, until_us)
        )

    async def renew_run(self, access: Access, lease: Lease, *, until_us: int) -> Lease:
        """Stay the owner."""
        return await self._door.write(access, lambda work: runs.renew_run(work, lease, until_us))

    async def release_run(self, access: Access, lease: Lease) -> None:
        """Be the owner no longer."""
        await self._door.write(access, lambda work: runs.release_run(work, lease))

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Sequence[Lease]:
        """Return responses of all tenants whose owners are gone."""
        return await self._door.read_for_all(
            lambda work: runs.orphan_runs(work, now_us, limit), timeout_s=timeout_s
        )

    async def request_cancel(self, access: Access, response_id: str) -> StoredResponse | None:
        """Note that a cancel was requested."""
        return await self._door.write(access, lambda work: runs.request_cancel(work, response_id))

    async def append_events(
        self,
        access: Access,
        response_id: str,
        blobs: Sequence[EventBlob],
        *,
        expires_us: int,
        token: int = 0,
    ) -> None:
        """Keep parts of a stream."""
        await self._door.write(
            access, lambda work: runs.append_events(work, response_id, blobs, expires_us, token)
        )

    async def read_events(
        self,
        access: Access,
        response_id: str,
        *,
        after: int,
        limit: int,
        bytes_max: int = EVENTS_BYTES_MAX,
    ) -> Sequence[EventBlob]:
        """Return the parts that have later events."""
        return await self._door.read(
            access, lambda work: runs.read_events(work, response_id, after, limit, bytes_max)
        )

    async def reserve_key(
        self, access: Access, key: Idempotency, response_id: str, *, now_us: int
    ) -> Reserved:
        """Reserve a key for a response."""
        return await self._door.write(
            access, lambda work: runs.reserve_key(work, key, response_id, now_us)
        )

    async def release_key(self, access: Access, key: str, response_id: str) -> None:
        """Give a key back."""
        await self._door.write(access, lambda work: runs.release_key(work, key, response_id))
