from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from smg_storage.errors import StoreErrorKind
from smg_storage.no_store import NoStore
from smg_storage.records import (
    EventBlob,
    Idempotency,
    KeyState,
    Lease,
    PageAsk,
    Patch,
    Status,
    StoreFigures,
)
from support.store_contract.maker import Clock, Opened
from support.store_contract.stage import BAD_REFERENCE, CONFLICT, Stage, refused


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    store = NoStore()
    await store.start()
    yield Stage(Opened(store, store, Clock()))
    await store.close()


WRITES: dict[str, Callable[[Stage], Awaitable[object]]] = {
    "create_conversation": lambda s: s.store.create_conversation(s.access, s.conversation()),
    "create_item": lambda s: s.store.create_item(s.access, s.item()),
    "link_items": lambda s: s.store.link_items(s.access, "conv_x", ["msg_x"], now_us=1),
    "append_items": lambda s: s.store.append_items(s.access, "conv_x", [s.item()], now_us=1),
    "commit_turn": lambda s: s.store.commit_turn(s.access, s.turn()),
    "store_response": lambda s: s.store.store_response(s.access, s.response()),
    "append_events": lambda s: s.store.append_events(
        s.access, "resp_x", [EventBlob(0, 0, b"")], expires_us=0
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_what_would_have_to_be_kept_is_refused(
    stage: Stage, write: Callable[[Stage], Awaitable[object]]
) -> None:
    with refused(StoreErrorKind.REJECTED):
        await write(stage)


async def test_nothing_is_there(stage: Stage) -> None:
    store, access = stage.store, stage.access
    nothing = [
        await store.get_conversation(access, "conv_x"),
        await store.update_conversation(access, "conv_x", b"{}", now_us=1),
        await store.list_items(access, "conv_x", PageAsk()),
        await store.newest_items(access, "conv_x", items_max=1, bytes_max=1),
        await store.get_item(access, "msg_x"),
        await store.get_response(access, "resp_x"),
        await store.patch_response(
            access, "resp_x", Patch(status=Status.FAILED), from_statuses=list(Status)
        ),
        await store.claim_run(access, "resp_x", "n", now_us=1, until_us=2),
        await store.request_cancel(access, "resp_x"),
    ]
    assert nothing == [None] * len(nothing)
    assert await store.delete_conversation(access, "conv_x") is False
    assert await store.is_item_linked(access, "conv_x", "msg_x") is False
    assert await store.delete_item(access, "conv_x", "msg_x") is False
    assert await store.delete_response(access, "resp_x") is False
    assert await store.delete_identifier_responses(access, "p") == 0
    assert dict(await store.find_items(access, ["msg_x"])) == {}
    assert list(await store.read_events(access, "resp_x", after=-1, limit=9)) == []
    assert list(await store.orphan_runs(now_us=1, limit=9, timeout_s=1)) == []
    chain = await stage.chain("resp_x")
    assert (list(chain.responses), chain.complete, chain.missing) == ([], False, "resp_x")
    page = await store.list_identifier_responses(access, "p", PageAsk())
    assert (list(page.responses), page.has_more) == ([], False)
    with refused(BAD_REFERENCE, missing="resp_x"):
        await store.list_identifier_responses(access, "p", PageAsk(after="resp_x"))


async def test_nobody_runs_anything(stage: Stage) -> None:
    lease = Lease(stage.access.tenant, "resp_x", "n", token=1, until_us=2)
    with refused(CONFLICT):
        await stage.store.renew_run(stage.access, lease, until_us=3)
    await stage.store.release_run(stage.access, lease)


async def test_every_key_is_new(stage: Stage) -> None:
    key = Idempotency("k", b"d" * 16, 0)
    for _ in range(2):
        reserved = await stage.store.reserve_key(stage.access, key, "resp_x", now_us=1)
        assert (reserved.state, reserved.response_id) == (KeyState.NEW, "")
        await stage.store.release_key(stage.access, "k", "resp_x")


async def test_it_is_well_and_says_what_it_is(stage: Stage) -> None:
    await stage.store.ping(timeout_s=1)
    assert (stage.store.kind, stage.store.shared) == ("none", True)
    assert await stage.store.purge(now_us=1, batch=9, timeout_s=1) == 0
    assert await stage.store.figures(timeout_s=1) == StoreFigures(0, 0, 0, 0)
    assert await stage.store.tenant_figures(stage.access) == StoreFigures(0, 0, 0, 0)
    assert stage.store.pool() is None
