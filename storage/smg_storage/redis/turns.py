"""Turns in Redis: everything that one response leaves behind, written as one.

Where all of it lies in one slot, or on one server, that is one function. Else the order in the room's own description is kept:
what is needed by others first, the row, then what only leads to it.
"""

from collections.abc import Sequence

import msgspec

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import thread_of
from smg_storage.records import Access, Committed, Location, StoredResponse, Turn
from smg_storage.redis.codec import (
    check_size,
    location_text,
    pack_document,
    pack_head,
    response_digest,
)
from smg_storage.redis.errors import door
from smg_storage.redis.item_append import Additions, Appending, Held
from smg_storage.redis.keys import person_member
from smg_storage.redis.lua_library import Effect
from smg_storage.redis.server import Ask
from smg_storage.redis.store_part import by_thread, found, link


class RedisTurns(Appending):
    """Turns of a store in Redis."""

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """Write all that a response leaves behind as one unit; its id makes a repetition harmless."""
        _check(turn)
        async with door(access.timeout_s):
            return await self._commit(access.tenant, turn)

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """Keep a response without anything else, and return its id."""
        turn = Turn(record)
        _check(turn)
        async with door(access.timeout_s):
            await self._commit(access.tenant, turn, by_itself=True)
        return record.id

    async def settle(self, tenant: str, response_id: str, work: bytes) -> None:
        """Do what a turn that was cut off still had to do in other slots."""
        additions = msgspec.msgpack.decode(work, type=Additions)
        try:
            await self.append(tenant, additions)
        except StoreError as error:
            if error.kind is StoreErrorKind.UNAVAILABLE:
                raise
            # All was checked before the row was written. What the conversation does not take now, because it was deleted
            # meanwhile, for instance, it lost as if that had come after the turn.
        await self._server.call(
            Effect.FREE, self._ask("settled", tenant, response_id, id=response_id)
        )

    async def _commit(self, tenant: str, turn: Turn, *, by_itself: bool = False) -> Committed:
        record = turn.response
        ask = await self._row(tenant, turn)
        ask.arguments["only_new"] = by_itself
        if by_itself:
            ask.arguments["token"] = 0
        additions = self._additions(turn) if not by_itself else None
        if self._server.alone:
            if additions is not None:
                await self.add(ask, additions)
            return _committed(found(await self._server.call(Effect.WRITE, ask)))
        await self._take_key(tenant, turn)
        if additions is None:
            committed, _ = await self._write(ask)
        else:
            committed = await self._commit_apart(tenant, record.id, ask, additions)
        await self._lead_to(tenant, turn)
        return committed

    def _additions(self, turn: Turn) -> Additions | None:
        conversation_id = turn.response.conversation_id
        if not conversation_id:
            if turn.links:
                raise StoreError(
                    StoreErrorKind.BAD_REFERENCE,
                    "links of a response without a conversation",
                    missing=turn.links[0],
                )
            if not turn.items:
                return None
        ends_us = turn.conversation_expires_us
        return Additions(conversation_id, turn.items, turn.links, self._server.now_us(), ends_us)

    async def _row(self, tenant: str, turn: Turn) -> Ask:
        """Return the call that writes the row, and whatever is within its reach."""
        record = turn.response
        ask = self._ask("commit", tenant, record.id)
        before = record.previous_response_id
        ask.arguments |= {
            "id": record.id,
            "h": response_digest(record),
            "token": turn.token,
            "s": record.status.value,
            "d": str(record.completed_us),
            "x": str(record.expires_us),
            "version": str(record.version),
            "o": record.owner,
            "k": str(record.lease_token),
            "u": str(record.lease_until_us),
            "q": "1" if record.cancel_requested else "0",
            "bg": record.background,
            "p": before,
            "t": thread_of(before) if before else "",
            "n": str(len(record.input) + len(record.response)),
            "m": str(len(record.input)),
            "f": ask.blob(pack_head(record)),
            "i": ask.blob(await pack_document(record.input, self._deflate_bytes_min)),
            "r": ask.blob(await pack_document(record.response, self._deflate_bytes_min)),
            "locs": _places(turn.locations),
            "l": msgspec.json.encode([link(place.item_id) for place in turn.locations]).decode(),
            "runs": self._server.keys.runs,
            "run": self._server.keys.run(tenant, record.id),
            "until_us": str(record.lease_until_us),
        }
        if record.safety_identifier:
            ask.arguments["y"] = self._person(tenant, record)
        if turn.idempotency is not None:
            ask.arguments["idem"] = {
                "k": self._server.keys.idempotency(tenant, turn.idempotency.key),
                "d": turn.idempotency.digest.hex(),
                "x": str(turn.idempotency.expires_us),
            }
        return ask

    async def _write(self, ask: Ask) -> tuple[Committed, bytes]:
        answer = found(await self._server.call(Effect.WRITE, ask))
        return _committed(answer), answer[2]

    async def _commit_apart(
        self, tenant: str, response_id: str, ask: Ask, additions: Additions
    ) -> Committed:
        """Commit in a cluster: items of other slots first, and a conversation of another slot last."""
        conversation_id = additions.conversation_id
        together = not conversation_id or thread_of(conversation_id) == thread_of(response_id)
        held = Held([], [])
        try:
            held = await self.hold(tenant, additions)
            if not together:
                await self._check_append(tenant, additions)
        except StoreError as error:
            await self.undo(tenant, conversation_id, held)
            return await self._again(ask, error)
        if together:
            await self.add(ask, additions)
        else:
            ask.arguments["w"] = ask.blob(msgspec.msgpack.encode(additions))
        try:
            committed, left = await self._write(ask)
        except StoreError:
            await self.undo(tenant, conversation_id, held)
            raise
        if committed.again and not left:
            await self.undo(tenant, conversation_id, held)
        elif not together:
            await self.settle(tenant, response_id, left or msgspec.msgpack.encode(additions))
        if together:
            return committed
        return Committed(await self._positions(tenant, additions), committed.again)

    async def _again(self, ask: Ask, error: StoreError) -> Committed:
        """Answer a repetition as before, whatever has become of its conversation; else raise the error."""
        ask.arguments["never"] = True
        try:
            return (await self._write(ask))[0]
        except StoreError:
            raise error from None

    async def _check_append(self, tenant: str, additions: Additions) -> None:
        ask = self._ask("append_check", tenant, additions.conversation_id)
        await self.add(ask, additions)
        await self._server.call(Effect.READ, ask)

    async def _positions(self, tenant: str, additions: Additions) -> Sequence[int]:
        ask = self._ask("positions", tenant, additions.conversation_id)
        await self.add(ask, Additions(additions.conversation_id, (), additions.links, 0))
        (positions,) = found(await self._server.call(Effect.READ, ask))
        return [int(position) for position in positions]

    async def _take_key(self, tenant: str, turn: Turn) -> None:
        if turn.idempotency is None:
            return
        key = self._server.keys.idempotency(tenant, turn.idempotency.key)
        ask = self._server.ask(
            "idem_take",
            tenant,
            "",
            key,
            k=key,
            id=turn.response.id,
            t=thread_of(turn.response.id),
            d=turn.idempotency.digest.hex(),
            x=str(turn.idempotency.expires_us),
        )
        await self._server.call(Effect.WRITE, ask)

    async def _lead_to(self, tenant: str, turn: Turn) -> None:
        """Write what leads to a response from other slots of a cluster: places, a person's list, runs."""
        record = turn.response
        home = thread_of(record.id)
        away = [place for place in turn.locations if not self._near(home, place.item_id)]
        asks = [
            self._server.ask(
                "locate",
                tenant,
                thread,
                locs=_places(some),
                rt=home,
                id=record.id,
                x=str(record.expires_us),
            )
            for thread, some in by_thread((place.item_id, place) for place in away).items()
        ]
        if record.safety_identifier:
            person = self._person(tenant, record)
            asks.append(self._server.ask("person_add", tenant, "", person["k"], y=person))
        if record.background and not record.status.is_final:
            runs = self._server.keys.runs
            later = [(str(record.lease_until_us), self._server.keys.run(tenant, record.id))]
            asks.append(
                self._server.ask("runs_note", tenant, "", runs, runs=runs, gone=[], later=later)
            )
        await self._server.call_all(Effect.WRITE, asks)

    def _person(self, tenant: str, record: StoredResponse) -> dict[str, str]:
        return {
            "k": self._server.keys.person(tenant, record.safety_identifier),
            "m": person_member(record.id),
            "n": str(record.created_us),
            "x": str(record.expires_us),
        }


def _check(turn: Turn) -> None:
    check_size(turn.response.input, turn.response.response)
    check_size(*(item.document for item in turn.items))


def _places(locations: Sequence[Location]) -> list[dict[str, str]]:
    return [{**link(place.item_id), "s": location_text(place)} for place in locations]


def _committed(answer: Sequence[object]) -> Committed:
    again, positions = answer[0], answer[1]
    assert isinstance(positions, list)
    return Committed([int(position) for position in positions], bool(again))
