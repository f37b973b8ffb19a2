"""Responses in Redis: reading, changing and forgetting them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_storage.ids import thread_of
from smg_storage.records import (
    Access,
    Chain,
    PageAsk,
    Patch,
    ResponsePage,
    Status,
    StoredResponse,
)
from smg_storage.redis.codec import open_response, pack_document, unbundle
from smg_storage.redis.errors import door, refuse
from smg_storage.redis.keys import person_member
from smg_storage.redis.lua_library import Effect
from smg_storage.redis.server import Ask
from smg_storage.redis.store_part import by_thread, found
from smg_storage.redis.turns import RedisTurns

CHAIN_MAX: Final = 2_000
"""Of responses in one read: no call keeps the server busy for long."""
PAGE_MAX: Final = 100
_CHAIN_ROW: Final = 12
"""Fields of a row, and its id."""


class RedisResponses(RedisTurns):
    """Responses of a store in Redis."""

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """Return a response."""
        async with door(access.timeout_s):
            ask = self._response("row", access, response_id)
            answer = await self._server.call(Effect.READ, ask)
            if answer is None:
                return None
            row, work = answer
            if work:
                await self.settle(access.tenant, response_id, work)
            return await open_response(response_id, row)

    async def patch_response(
        self,
        access: Access,
        response_id: str,
        patch: Patch,
        *,
        from_statuses: Sequence[Status],
        token: int = 0,
    ) -> StoredResponse | None:
        """Change a response that has one of these statuses, and that lease; else CONFLICT. None if it is not there."""
        async with door(access.timeout_s):
            ask = self._response("patch", access, response_id)
            ask.arguments |= {
                "token": token,
                "from": {status.value: True for status in from_statuses},
                "changes": _changes(patch),
                "runs": self._server.keys.runs,
                "run": self._server.keys.run(access.tenant, response_id),
            }
            if patch.response is not None:
                packed = await pack_document(patch.response, self._deflate_bytes_min)
                ask.arguments |= {"r": ask.blob(packed), "n": len(patch.response)}
            answer = await self._server.call(Effect.WRITE, ask)
            return None if answer is None else await open_response(response_id, answer[0])

    async def delete_response(self, access: Access, response_id: str) -> bool:
        """Forget a response, its events and the locations of its items; return whether it was there."""
        async with door(access.timeout_s):
            return await self._delete(access.tenant, response_id)

    async def get_response_chain(
        self, access: Access, response_id: str, *, items_max: int, bytes_max: int
    ) -> Chain:
        """Return a response and what it continues, in one round trip to each thread that is in it."""
        async with door(access.timeout_s):
            return await self._chain(access, response_id, min(items_max, CHAIN_MAX), bytes_max)

    async def list_identifier_responses(
        self, access: Access, identifier: str, page: PageAsk
    ) -> ResponsePage:
        """Return the responses made for a person, by the caller's identifier of that person."""
        async with door(access.timeout_s):
            limit = min(page.limit, PAGE_MAX)
            records: list[StoredResponse] = []
            after = page.after
            while len(records) <= limit:
                ids, some = await self._person_page(access, identifier, page, after, limit + 1)
                records += some
                if len(ids) <= limit:
                    break
                after = ids[-1]
            return ResponsePage(records[:limit], has_more=len(records) > limit)

    async def delete_identifier_responses(self, access: Access, identifier: str) -> int:
        """Forget all of them; return how many there were."""
        count = 0
        async with door(access.timeout_s):
            ids = [""]
            while ids:
                page = PageAsk(limit=PAGE_MAX, newest_first=False)
                ids, records = await self._person_page(access, identifier, page, "", PAGE_MAX)
                for record in records:
                    count += await self._delete(access.tenant, record.id)
        return count

    async def sweep_person(self, tenant: str, key: str) -> int:
        """Drop from a person's list what is gone of its oldest; return how much that was."""
        ask = self._server.ask("person_page", tenant, "", key, k=key, newest=False, limit=PAGE_MAX)
        (members,) = found(await self._server.call(Effect.READ, ask))
        ids = [_member_id(member) for member in members]
        rows = await self._rows(tenant, ids)
        gone = [one for one in ids if rows[one] is None]
        await self._unlist(tenant, key, gone)
        return len(gone)

    def _response(
        self, function: str, access: Access, response_id: str, **arguments: object
    ) -> Ask:
        return self._ask(function, access.tenant, response_id, id=response_id, **arguments)

    async def _rows(self, tenant: str, ids: Sequence[str]) -> Mapping[str, list[Any] | None]:
        asks = [self._ask("row", tenant, one, id=one) for one in ids]
        answers = await self._server.call_all(Effect.READ, asks)
        return dict(zip(ids, answers, strict=True))

    async def _chain(
        self, access: Access, response_id: str, items_max: int, bytes_max: int
    ) -> Chain:
        records: dict[str, StoredResponse] = {}
        at = response_id
        while True:
            if at in records:
                refuse("cycle", at)
            left = (items_max - len(records), bytes_max)
            ask = self._response("chain", access, at, items_max=left[0], bytes_max=left[1])
            ask.arguments["begun"] = bool(records)
            bundle, how, at, used = found(await self._server.call(Effect.READ, ask))
            how, at = how.decode(), at.decode()
            for row in unbundle(bundle, _CHAIN_ROW):
                one = row[-1].decode()
                if one in records:
                    refuse("cycle", one)
                records[one] = await open_response(one, row)
            bytes_max -= used
            if how == "on" and len(records) >= items_max:
                how = "more"
            if how != "on":
                missing = at if how == "missing" else ""
                return Chain(list(records.values()), complete=how == "end", missing=missing)

    async def _delete(self, tenant: str, response_id: str) -> bool:
        ask = self._ask("resp_delete", tenant, response_id, id=response_id)
        ask.arguments |= {
            "runs": self._server.keys.runs,
            "run": self._server.keys.run(tenant, response_id),
        }
        there, places, person, _member = found(await self._server.call(Effect.FREE, ask))
        if self._server.alone:
            return bool(there)
        home = thread_of(response_id)
        away = [
            (place["i"], place)
            for place in msgspec.json.decode(places, type=list[dict[str, str]])
            if not self._near(home, place["i"])
        ]
        asks = [
            self._server.ask("unlocate", tenant, thread, locs=some, rt=home, id=response_id)
            for thread, some in by_thread(away).items()
        ]
        await self._server.call_all(Effect.FREE, asks)
        if person:
            await self._unlist(tenant, person.decode(), [response_id])
        return bool(there)

    async def _person_page(
        self, access: Access, identifier: str, page: PageAsk, after: str, limit: int
    ) -> tuple[list[str], list[StoredResponse]]:
        """Return ids of a list after one of them, and the responses that are there; drop the others from it."""
        key = self._server.keys.person(access.tenant, identifier)
        ask = self._server.ask(
            "person_page", access.tenant, "", key, k=key, newest=page.newest_first, limit=limit
        )
        if after:
            ask.arguments |= {"after": person_member(after), "after_id": after}
        (members,) = found(await self._server.call(Effect.READ, ask))
        ids = [_member_id(member) for member in members]
        records, gone = [], []
        for one, answer in (await self._rows(access.tenant, ids)).items():
            record = None if answer is None else await open_response(one, answer[0])
            if record is None or record.safety_identifier != identifier:
                gone.append(one)
            else:
                records.append(record)
        # The last one stays for now: it is where the next page begins.
        await self._unlist(access.tenant, key, [one for one in gone if one != ids[-1]])
        return ids, records

    async def _unlist(self, tenant: str, key: str, ids: Sequence[str]) -> None:
        if ids:
            members = [person_member(one) for one in ids]
            ask = self._server.ask("person_remove", tenant, "", key, k=key, members=members)
            await self._server.call(Effect.FREE, ask)


def _member_id(member: bytes) -> str:
    return member.decode().partition(" ")[0]


def _changes(patch: Patch) -> list[tuple[str, str]]:
    """Return the fields of a row that a patch sets, and what to."""
    changes = []
    if patch.status is not None:
        changes.append(("s", patch.status.value))
    if patch.completed_us is not None:
        changes.append(("d", str(patch.completed_us)))
    if patch.expires_us is not None:
        changes.append(("x", str(patch.expires_us)))
    return changes
