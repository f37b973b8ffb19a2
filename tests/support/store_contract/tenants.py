"""Tenants see and change nothing of each other, by any operation."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import pytest

from smg_storage.errors import StoreError
from smg_storage.records import (
    EventBlob,
    Idempotency,
    Item,
    KeyState,
    Lease,
    Location,
    PageAsk,
    Patch,
    Side,
    Status,
    StoredResponse,
    Turn,
)
from support.store_contract.stage import CONFLICT, HOUR_S, Stage, message


@dataclass(frozen=True, slots=True)
class Owned:
    """What belongs to one tenant: one of everything, by the ids of it."""

    conversation_id: str
    item: Item
    response: StoredResponse
    located_id: str
    lease: Lease


async def settle(stage: Stage) -> Owned:
    """Keep one of everything for the first tenant."""
    conversation_id = await stage.new_conversation()
    (item,) = await stage.append(conversation_id, 1)
    located_id = stage.new_id("msg")
    response = msgspec.structs.replace(
        stage.running(),
        conversation_id=conversation_id,
        safety_identifier="person",
        input=b"[" + message(located_id, "mine") + b"]",
    )
    turn = Turn(
        response=response,
        locations=[Location(located_id, response.id, Side.INPUT, 0)],
        idempotency=Idempotency("key", b"d" * 16, stage.in_s(HOUR_S)),
    )
    await stage.store.commit_turn(stage.access, turn)
    await stage.store.append_events(
        stage.access, response.id, [EventBlob(0, 3, b"mine")], expires_us=stage.in_s(HOUR_S)
    )
    lease = await stage.claimed(response)
    return Owned(conversation_id, item, response, located_id, lease)


def unknown(stage: Stage, owned: Owned) -> Owned:
    """Return the same with ids that nobody has."""
    response_id = stage.new_id("resp")
    return Owned(
        stage.new_id("conv"),
        msgspec.structs.replace(owned.item, id=stage.new_id("msg")),
        msgspec.structs.replace(owned.response, id=response_id),
        stage.new_id("msg"),
        msgspec.structs.replace(owned.lease, tenant="rival", response_id=response_id),
    )


async def everything(stage: Stage, owned: Owned) -> list[object]:
    """Return all that the first tenant can read."""
    store, access = stage.store, stage.access
    return [
        await store.get_conversation(access, owned.conversation_id),
        await store.list_items(access, owned.conversation_id, PageAsk()),
        await store.get_item(access, owned.item.id),
        await store.get_item(access, owned.located_id),
        await store.is_item_linked(access, owned.conversation_id, owned.item.id),
        await store.get_response(access, owned.response.id),
        await stage.chain(owned.response.id),
        await store.list_identifier_responses(access, "person", PageAsk()),
        list(await store.read_events(access, owned.response.id, after=-1, limit=9)),
        list(await store.orphan_runs(now_us=stage.in_s(HOUR_S), limit=9, timeout_s=30)),
        await store.reserve_key(
            access,
            Idempotency("key", b"d" * 16, stage.in_s(HOUR_S)),
            stage.new_id("resp"),
            now_us=stage.now_us,
        ),
    ]


Attempt = Callable[[Stage, Owned], Awaitable[object]]
_OPEN: Final = (Status.QUEUED, Status.IN_PROGRESS)

# What the second tenant tries with ids of the first, and of nobody: the answers have to be the same.
ATTEMPTS: Final[Mapping[str, Attempt]] = {
    "get_conversation": lambda s, o: s.store.get_conversation(s.foreign, o.conversation_id),
    "update_conversation": lambda s, o: s.store.update_conversation(
        s.foreign, o.conversation_id, b'{"mine":1}', now_us=s.now_us
    ),
    "update_conversation_of_a_version": lambda s, o: s.store.update_conversation(
        s.foreign, o.conversation_id, b'{"mine":1}', now_us=s.now_us, if_version=1
    ),
    "delete_conversation": lambda s, o: s.store.delete_conversation(s.foreign, o.conversation_id),
    "link_items": lambda s, o: s.store.link_items(
        s.foreign, o.conversation_id, [o.item.id], now_us=s.now_us
    ),
    "append_items": lambda s, o: s.store.append_items(
        s.foreign, o.conversation_id, [s.item("intruder")], now_us=s.now_us
    ),
    "list_items": lambda s, o: s.store.list_items(s.foreign, o.conversation_id, PageAsk()),
    "list_items_after": lambda s, o: s.store.list_items(
        s.foreign, o.conversation_id, PageAsk(after=o.item.id)
    ),
    "newest_items": lambda s, o: s.store.newest_items(
        s.foreign, o.conversation_id, items_max=9, bytes_max=9_999
    ),
    "get_item": lambda s, o: s.store.get_item(s.foreign, o.item.id),
    "get_item_of_a_response": lambda s, o: s.store.get_item(s.foreign, o.located_id),
    "find_items": lambda s, o: s.store.find_items(s.foreign, [o.item.id, o.located_id]),
    "is_item_linked": lambda s, o: s.store.is_item_linked(s.foreign, o.conversation_id, o.item.id),
    "delete_item": lambda s, o: s.store.delete_item(s.foreign, o.conversation_id, o.item.id),
    "commit_turn": lambda s, o: s.store.commit_turn(s.foreign, s.turn(o.conversation_id)),
    "commit_turn_under_a_token": lambda s, o: s.store.commit_turn(
        s.foreign,
        Turn(response=msgspec.structs.replace(s.response(), id=o.response.id), token=o.lease.token),
    ),
    "get_response": lambda s, o: s.store.get_response(s.foreign, o.response.id),
    "patch_response": lambda s, o: s.store.patch_response(
        s.foreign, o.response.id, Patch(status=Status.FAILED), from_statuses=_OPEN, token=1
    ),
    "delete_response": lambda s, o: s.store.delete_response(s.foreign, o.response.id),
    "get_response_chain": lambda s, o: s.store.get_response_chain(
        s.foreign, o.response.id, items_max=9, bytes_max=9_999
    ),
    "list_identifier_responses": lambda s, o: s.store.list_identifier_responses(
        s.foreign, "person", PageAsk()
    ),
    "list_identifier_responses_after": lambda s, o: s.store.list_identifier_responses(
        s.foreign, "person", PageAsk(after=o.response.id)
    ),
    "delete_identifier_responses": lambda s, o: s.store.delete_identifier_responses(
        s.foreign, "person"
    ),
    "claim_run": lambda s, o: s.store.claim_run(
        s.foreign, o.response.id, "thief", now_us=s.in_s(HOUR_S), until_us=s.in_s(2 * HOUR_S)
    ),
    "renew_run": lambda s, o: s.store.renew_run(s.foreign, o.lease, until_us=s.in_s(HOUR_S)),
    "release_run": lambda s, o: s.store.release_run(s.foreign, o.lease),
    "request_cancel": lambda s, o: s.store.request_cancel(s.foreign, o.response.id),
    "append_events_under_a_token": lambda s, o: s.store.append_events(
        s.foreign, o.response.id, [EventBlob(4, 9, b"x")], expires_us=s.in_s(HOUR_S), token=1
    ),
    "release_key": lambda s, o: s.store.release_key(s.foreign, "key", o.response.id),
    "read_events": lambda s, o: s.store.read_events(s.foreign, o.response.id, after=-1, limit=9),
}


async def answer(attempt: Attempt, stage: Stage, owned: Owned) -> str:
    """Return what an attempt comes to, with the ids it was about replaced by what they are."""
    try:
        text = repr(await attempt(stage, owned))
    except StoreError as error:
        text = f"{error.kind} {error.message} missing {error.missing}"
    for name, known in (
        ("CONVERSATION", owned.conversation_id),
        ("ITEM", owned.item.id),
        ("RESPONSE", owned.response.id),
        ("LOCATED", owned.located_id),
    ):
        text = text.replace(known, name)
    return text


class TenantCases:
    @pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
    async def test_what_is_anothers_is_not_there(self, stage: Stage, attempt: Attempt) -> None:
        owned = await settle(stage)
        before = await everything(stage, owned)
        nobodys = await answer(attempt, stage, unknown(stage, owned))
        anothers = await answer(attempt, stage, owned)
        # A turn of a conversation has a new response each time.
        assert anothers == nobodys
        assert await everything(stage, owned) == before

    async def test_each_may_have_the_same_ids(self, stage: Stage) -> None:
        owned = await settle(stage)
        before = await everything(stage, owned)
        store, foreign = stage.store, stage.foreign
        conversation = msgspec.structs.replace(
            stage.conversation(b'{"of":"rival"}'), id=owned.conversation_id
        )
        assert await store.create_conversation(foreign, conversation) == conversation
        item = msgspec.structs.replace(stage.item("of rival"), id=owned.item.id)
        assert await store.create_item(foreign, item) == item
        await store.append_items(foreign, conversation.id, [item], now_us=stage.now_us)
        response = msgspec.structs.replace(
            stage.response(identifier="person"), id=owned.response.id
        )
        turn = Turn(
            response=response,
            idempotency=Idempotency("key", b"e" * 16, stage.in_s(HOUR_S)),
        )
        assert (await store.commit_turn(foreign, turn)).again is False
        blob = EventBlob(0, 9, b"of rival")
        await store.append_events(foreign, response.id, [blob], expires_us=stage.in_s(HOUR_S))
        assert await everything(stage, owned) == before
        assert await store.get_item(foreign, item.id) == item
        assert list(await store.read_events(foreign, response.id, after=-1, limit=9)) == [blob]
        assert await store.delete_identifier_responses(foreign, "person") == 1
        assert await store.delete_conversation(foreign, conversation.id) is True
        assert await everything(stage, owned) == before

    async def test_each_has_keys_of_its_own(self, stage: Stage) -> None:
        owned = await settle(stage)
        key = Idempotency("key", b"e" * 16, stage.in_s(HOUR_S))
        foreign = await stage.store.reserve_key(
            stage.foreign, key, stage.new_id("resp"), now_us=stage.now_us
        )
        own = await stage.store.reserve_key(
            stage.access, key, stage.new_id("resp"), now_us=stage.now_us
        )
        assert (foreign.state, own.state) == (KeyState.NEW, KeyState.DIFFERENT)
        same = msgspec.structs.replace(key, digest=b"d" * 16)
        again = await stage.store.reserve_key(
            stage.access, same, stage.new_id("resp"), now_us=stage.now_us
        )
        assert (again.state, again.response_id) == (KeyState.SAME, owned.response.id)

    async def test_a_chain_does_not_go_on_in_another_tenant(self, stage: Stage) -> None:
        owned = await settle(stage)
        foreign = stage.response(previous=owned.response)
        await stage.store.store_response(stage.foreign, foreign)
        chain = await stage.store.get_response_chain(
            stage.foreign, foreign.id, items_max=9, bytes_max=9_999
        )
        assert [record.id for record in chain.responses] == [foreign.id]
        assert (chain.complete, chain.missing) == (False, owned.response.id)

    async def test_tenants_whose_names_are_alike_are_not_the_same(self, stage: Stage) -> None:
        made = stage.response(identifier="p")
        names = ["acme", "Acme", "acme-", "acme.eu", "-", "a" * 64]
        for name in names:
            access = msgspec.structs.replace(stage.access, tenant=name)
            mine = msgspec.structs.replace(made, model=f"of {name}")
            assert await stage.store.store_response(access, mine) == made.id
        for name in names:
            access = msgspec.structs.replace(stage.access, tenant=name)
            read = await stage.other.get_response(access, made.id)
            assert read is not None
            assert read.model == f"of {name}"
            with pytest.raises(StoreError) as told:
                await stage.store.store_response(access, made)
            assert told.value.kind is CONFLICT
