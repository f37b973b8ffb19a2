"""Runs in Redis: leases of responses, their event logs, and the keys of clients.

The set of background responses is only where to look: each of them is in it from its first row on,
scored by a time before which no node need look at it. Whether one has an owner says its own row, so
claiming and renewing touch nothing else.
"""

from collections.abc import Sequence
from typing import Final

from smg_storage.ids import thread_of
from smg_storage.records import (
    EVENTS_BYTES_MAX,
    Access,
    EventBlob,
    Idempotency,
    KeyState,
    Lease,
    Reserved,
    StoredResponse,
)
from smg_storage.redis.codec import (
    check_size,
    open_document,
    open_response,
    open_run,
    pack_document,
)
from smg_storage.redis.errors import corrupt, door
from smg_storage.redis.keys import run_of
from smg_storage.redis.lua_library import Effect
from smg_storage.redis.server import Ask
from smg_storage.redis.store_part import Part, found

EVENTS_MAX: Final = 1_000
"""Of parts of a stream in one read."""
_LOOKS_MAX: Final = 20
_LOOK: Final = 100


class RedisRuns(Part):
    """Runs of a store in Redis."""

    async def claim_run(
        self, access: Access, response_id: str, owner: str, *, now_us: int, until_us: int
    ) -> Lease | None:
        """Become the owner of a response that is not final and has none, or one whose lease is over; None else."""
        async with door(access.timeout_s):
            ask = self._ask("claim", access.tenant, response_id, id=response_id, owner=owner)
            ask.arguments |= {"at": now_us, "until_us": str(until_us)}
            self._note_run(ask, access, response_id)
            answer = await self._server.call(Effect.WRITE, ask)
            if answer is None:
                return None
            token, cancel = answer
            return Lease(access.tenant, response_id, owner, int(token), until_us, cancel == b"1")

    async def renew_run(self, access: Access, lease: Lease, *, until_us: int) -> Lease:
        """Stay the owner, and learn whether a cancel was requested; CONFLICT for a
        node that is no longer the owner.
        """
        async with door(access.timeout_s):
            ask = self._ask("renew", access.tenant, lease.response_id, id=lease.response_id)
            ask.arguments |= {
                "owner": lease.owner,
                "token": lease.token,
                "until_us": str(until_us),
            }
            self._note_run(ask, access, lease.response_id)
            answer = await self._server.call(Effect.WRITE, ask)
            (cancel,) = found(answer)
            return Lease(
                access.tenant,
                lease.response_id,
                lease.owner,
                lease.token,
                until_us,
                cancel == b"1",
            )

    async def release_run(self, access: Access, lease: Lease) -> None:
        """Be the owner no longer; nothing happens if this one is not."""
        async with door(access.timeout_s):
            ask = self._ask("release", access.tenant, lease.response_id, id=lease.response_id)
            ask.arguments |= {"owner": lease.owner, "token": lease.token}
            self._note_run(ask, access, lease.response_id)
            await self._server.call(Effect.FREE, ask)

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Sequence[Lease]:
        """Return background responses of all tenants, not final, whose lease is over: the oldest first."""
        orphans: list[tuple[int, Lease]] = []
        async with door(timeout_s):
            for _ in range(_LOOKS_MAX):
                some, looked = await self._look(now_us, skip=len(orphans))
                orphans += some
                # In a cluster the set is behind: who has gone may come after many who have not.
                if looked < _LOOK or (self._server.alone and len(orphans) >= limit):
                    break
        orphans.sort(key=lambda pair: (pair[1].until_us, pair[0], pair[1].response_id))
        return [lease for _, lease in orphans[:limit]]

    async def request_cancel(self, access: Access, response_id: str) -> StoredResponse | None:
        """Note that a cancel was requested, unless it is final; return it as
        it is, None if it is not there.
        """
        async with door(access.timeout_s):
            ask = self._ask("cancel", access.tenant, response_id, id=response_id)
            answer = await self._server.call(Effect.WRITE, ask)
            return None if answer is None else await open_response(response_id, answer[0])

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
        async with door(access.timeout_s):
            check_size(*(blob.payload for blob in blobs))
            ask = self._ask("events_add", access.tenant, response_id, id=response_id)
            ask.arguments |= {"x": str(expires_us), "token": token}
            ask.arguments["blobs"] = [
                (
                    str(blob.first),
                    str(blob.last),
                    ask.blob(await pack_document(blob.payload, self._deflate_bytes_min)),
                )
                for blob in blobs
            ]
            await self._server.call(Effect.WRITE, ask)

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
        async with door(access.timeout_s):
            ask = self._ask("events_read", access.tenant, response_id, id=response_id)
            ask.arguments |= {"after": str(after), "limit": min(limit, EVENTS_MAX)}
            ask.arguments["bytes_max"] = bytes_max
            (parts,) = found(await self._server.call(Effect.READ, ask))
            blobs: list[EventBlob] = []
            length = 0
            for first, part in parts:
                last, _, packed = part.partition(b" ")
                if not last.isdigit():
                    raise corrupt(response_id)
                payload = await open_document(packed, response_id)
                # The server counted those that it has deflated as shorter than they are.
                length += len(payload)
                if blobs and length > bytes_max:
                    break
                blobs.append(EventBlob(int(first), int(last), payload))
            return blobs

    async def reserve_key(
        self, access: Access, key: Idempotency, response_id: str, *, now_us: int
    ) -> Reserved:
        """Reserve a key for a response, or learn that it had been, for the same request or for another one."""
        async with door(access.timeout_s):
            name = self._server.keys.idempotency(access.tenant, key.key)
            ask = self._server.ask("reserve", access.tenant, "", name, k=name, id=response_id)
            ask.arguments |= {
                "d": key.digest.hex(),
                "x": str(key.expires_us),
                "t": thread_of(response_id),
            }
            state, held_by, there = found(await self._server.call(Effect.WRITE, ask))
            holder = held_by.decode()
            if there < 0:
                row = self._ask("row", access.tenant, holder, id=holder)
                there = int(await self._server.call(Effect.READ, row) is not None)
            if state == b"same" and holder == response_id and not there:
                return Reserved(KeyState.NEW)
            return Reserved(KeyState(state.decode()), holder if there else "")

    async def release_key(self, access: Access, key: str, response_id: str) -> None:
        """Give a key back, so that it is new again; nothing happens if it stands for another response."""
        async with door(access.timeout_s):
            name = self._server.keys.idempotency(access.tenant, key)
            ask = self._server.ask("release_key", access.tenant, "", name, k=name, id=response_id)
            await self._server.call(Effect.FREE, ask)

    def _note_run(self, ask: Ask, access: Access, response_id: str) -> None:
        ask.arguments["runs"] = self._server.keys.runs
        ask.arguments["run"] = self._server.keys.run(access.tenant, response_id)

    async def _look(self, now_us: int, *, skip: int) -> tuple[list[tuple[int, Lease]], int]:
        """Look at some that may have no owner; put right what the set says of those that have one, or need none."""
        runs = self._server.keys.runs
        due = self._server.ask("runs_due", "", "", runs, runs=runs, limit=_LOOK, skip=skip)
        due.arguments["upto"] = now_us
        (texts,) = found(await self._server.call(Effect.READ, due))
        names = [run_of(text.decode()) for text in texts]
        asks = [self._ask("run", tenant, one, id=one) for tenant, one in names]
        answers = await self._server.call_all(Effect.READ, asks)
        orphans: list[tuple[int, Lease]] = []
        gone: list[str] = []
        later: list[tuple[str, str]] = []
        for text, (tenant, one), answer in zip(texts, names, answers, strict=True):
            run = None if answer is None else open_run(tenant, one, answer[0])
            if run is None:
                gone.append(text.decode())
            elif run.lease.until_us > now_us:
                later.append((str(run.lease.until_us), text.decode()))
            else:
                orphans.append((run.created_us, run.lease))
        if gone or later:
            note = self._server.ask("runs_note", "", "", runs, runs=runs, gone=gone, later=later)
            await self._server.call(Effect.FREE, note)
        return orphans, len(texts)
