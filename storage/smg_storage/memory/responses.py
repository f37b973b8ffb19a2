"""Responses in memory, with turns and chains."""

from collections.abc import Sequence

import msgspec

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.conversations import MemoryConversations
from smg_storage.memory.row_store import home_of
from smg_storage.memory.rows import (
    ROW_BYTES,
    Key,
    KeyRow,
    Kind,
    LocationRow,
    ResponseRow,
)
from smg_storage.memory.sorted_list import Ordered
from smg_storage.memory.write_equality import bad_reference, conflict, cost, patched, same_response
from smg_storage.records import (
    NEVER_US,
    Access,
    Chain,
    Committed,
    Idempotency,
    PageAsk,
    Patch,
    ResponsePage,
    Status,
    StoredResponse,
    Turn,
)
from smg_storage.text_limits import check_response


class MemoryResponses(MemoryConversations):
    """Responses of a store in memory."""

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """Write all that a response leaves behind as one unit; its id makes a repetition harmless."""
        now_us = self._begin()
        tenant, record = access.tenant, turn.response
        key = tenant, record.id
        row = self._response(key, now_us)
        conversation = self._conversation((tenant, record.conversation_id), now_us)
        if row is not None and same_response(row.record, record):
            known = conversation.position_of if conversation is not None else {}
            return Committed([known[each] for each in turn.links if each in known], again=True)
        self._check_turn(key, row, turn, now_us)
        if conversation is None and (record.conversation_id or turn.links):
            raise bad_reference("conversation", record.conversation_id)
        new = self._check_items(tenant, turn.items, turn.links, now_us)
        home = home_of(key)
        self._make_room_for(
            tenant,
            now_us,
            new,
            [home, *([conversation.thread] if conversation is not None else [])],
            links=turn.links,
            bytes_more=_cost(record)
            + ROW_BYTES * (len(turn.locations) + (turn.idempotency is not None))
            - (row.bytes if row is not None else 0),
            items_more=len(turn.locations),
            responses_more=1 if row is None else 0,
        )
        for item in new:
            self._keep_item(tenant, item, conversation.thread if conversation else home)
        self._write(key, record)
        self._locate(key, turn)
        if turn.idempotency is not None:
            self._keep_key(tenant, turn.idempotency, record.id)
        if conversation is None:
            return Committed()
        changed_us = record.completed_us or record.created_us
        return Committed(
            self._link(
                tenant,
                conversation,
                turn.links,
                changed_us=changed_us,
                ends_us=turn.conversation_expires_us,
            )
        )

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """Keep a response without anything else, and return its id."""
        now_us = self._begin()
        key = access.tenant, record.id
        row = self._response(key, now_us)
        if row is None:
            size = _cost(record)
            self._shelf.make_room(now_us, [home_of(key)], bytes_more=size, responses_more=1)
            self._write(key, record)
        elif not same_response(row.record, record):
            raise conflict("response", record.id)
        return record.id

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """Return a response."""
        row = self._response((access.tenant, response_id), self._begin())
        return row.record if row is not None else None

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
        now_us = self._begin()
        key = access.tenant, response_id
        row = self._response(key, now_us)
        if row is None:
            return None
        before = row.record
        changed = patched(before, patch)
        if token == before.lease_token and changed == before:
            return before
        if (
            token != before.lease_token
            or before.status.is_final
            or before.status not in from_statuses
        ):
            raise conflict("response", response_id)
        more = _cost(changed) - _cost(before)
        self._shelf.make_room(now_us, [row.thread], bytes_more=more)
        self._change(key, msgspec.structs.replace(changed, version=before.version + 1))
        return row.record

    async def delete_response(self, access: Access, response_id: str) -> bool:
        """Forget a response, its events and the locations of its items; return whether it was there."""
        key = access.tenant, response_id
        if self._response(key, self._begin()) is None:
            return False
        self._shelf.forget(Kind.RESPONSE, key)
        return True

    async def get_response_chain(
        self, access: Access, response_id: str, *, items_max: int, bytes_max: int
    ) -> Chain:
        """Return a response and what it continues, up to a number and to bytes of documents."""
        now_us = self._begin()
        found: dict[str, StoredResponse] = {}
        length = 0
        wanted = response_id
        while wanted:
            if wanted in found:
                raise StoreError(StoreErrorKind.CORRUPT, f"response {wanted} continues itself")
            if found and len(found) >= items_max:
                return Chain(list(found.values()), complete=False)
            row = self._response((access.tenant, wanted), now_us)
            if row is None:
                return Chain(list(found.values()), complete=False, missing=wanted)
            length += len(row.record.input) + len(row.record.response)
            if found and length > bytes_max:
                return Chain(list(found.values()), complete=False)
            found[wanted] = row.record
            wanted = row.record.previous_response_id
        return Chain(list(found.values()), complete=True)

    async def list_identifier_responses(
        self, access: Access, identifier: str, page: PageAsk
    ) -> ResponsePage:
        """Return the responses made for a person, by the caller's identifier of that person."""
        now_us = self._begin()
        listed = self._shelf.persons.get((access.tenant, identifier), Ordered[tuple[int, str]]())
        after: tuple[int, str] | None = None
        if page.after:
            row = self._response((access.tenant, page.after), now_us)
            if row is None or row.record.safety_identifier != identifier:
                raise bad_reference("response", page.after)
            after = row.record.created_us, page.after
        entries = listed.descending if page.newest_first else listed.ascending
        found: list[StoredResponse] = []
        for _, response_id in entries(after):
            row = self._response((access.tenant, response_id), now_us)
            if row is not None:
                if len(found) == page.limit:
                    return ResponsePage(found, has_more=True)
                found.append(row.record)
        return ResponsePage(found, has_more=False)

    async def delete_identifier_responses(self, access: Access, identifier: str) -> int:
        """Forget all of them; return how many there were."""
        now_us = self._begin()
        listed = self._shelf.persons.get((access.tenant, identifier))
        keys = [(access.tenant, each) for _, each in listed.ascending()] if listed else []
        alive = sum(self._response(key, now_us) is not None for key in keys)
        for key in keys:
            self._shelf.forget(Kind.RESPONSE, key)
        return alive

    # ── For runs too ─────────────────────────────────────────────────────────

    def _change(self, key: Key, record: StoredResponse) -> None:
        """Put a record in the place of the one that is there."""
        row = self._shelf.responses[key]
        self._shelf.unindex(key, row)
        self._shelf.weigh(row, _cost(record) - row.bytes)
        row.record = record
        self._shelf.end_at(Kind.RESPONSE, key, record.expires_us)
        self._shelf.index(key, row)

    def _keep_key(self, tenant: str, key: Idempotency, response_id: str) -> None:
        """Keep a key for a response, in the place of one that is over; there is room for it."""
        self._shelf.forget(Kind.KEY, (tenant, key.key))
        home = home_of((tenant, response_id))
        row = KeyRow(home, ROW_BYTES, key.expires_us, key, response_id)
        self._shelf.add(Kind.KEY, (tenant, key.key), row)

    def _key(self, key: Key, now_us: int) -> KeyRow | None:
        row = self._shelf.keys.get(key)
        if row is None or (row.expires_us != NEVER_US and row.expires_us <= now_us):
            return None
        return row

    def _check_turn(self, key: Key, row: ResponseRow | None, turn: Turn, now_us: int) -> None:
        """Refuse a turn that is not the one, or not the owner's."""
        if row is None:
            if turn.token != 0:
                raise conflict("response", key[1])  # it was deleted while it ran
        elif row.record.status.is_final or turn.token != row.record.lease_token:
            raise conflict("response", key[1])
        wanted = turn.idempotency
        if wanted is not None:
            held = self._key((key[0], wanted.key), now_us)
            if held is not None and (
                held.record.digest != wanted.digest or held.response_id != key[1]
            ):
                raise conflict("the idempotency key of response", held.response_id)

    def _write(self, key: Key, record: StoredResponse) -> None:
        """Keep a response, over one that was begun: who runs it stays as it is."""
        row = self._shelf.responses.get(key)
        if row is not None and _is_over(row, self._now_us()):
            self._shelf.forget(Kind.RESPONSE, key)
            row = None
        if row is None:
            row = ResponseRow(home_of(key), _cost(record), record.expires_us, record)
            self._shelf.add(Kind.RESPONSE, key, row)
            self._shelf.index(key, row)
            return
        before = row.record
        self._change(
            key,
            msgspec.structs.replace(
                record,
                owner=before.owner,
                lease_token=before.lease_token,
                lease_until_us=before.lease_until_us,
                cancel_requested=before.cancel_requested,
                version=before.version + 1,
            ),
        )

    def _locate(self, key: Key, turn: Turn) -> None:
        """Note where items are; where the same one is already, that stays."""
        row = self._shelf.responses[key]
        self._shelf.forget_locations(key, row)
        located = []
        for location in turn.locations:
            place = key[0], location.item_id
            if place not in self._shelf.locations:
                self._shelf.add(
                    Kind.LOCATION,
                    place,
                    LocationRow(row.thread, ROW_BYTES, NEVER_US, location),
                )
                located.append(location.item_id)
        row.located = tuple(located)


def _cost(record: StoredResponse) -> int:
    check_response(record)
    return cost(record.input, record.response)


def _is_over(row: ResponseRow, now_us: int) -> bool:
    return row.expires_us != NEVER_US and row.expires_us <= now_us
