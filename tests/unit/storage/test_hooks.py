from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint

import pytest
from msgspec.structs import replace

from smg_storage import hooks as module
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.hooks import HookedStore, Ids, Links, NamedHook, Payload, Reject, Replace
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Conversation, Item, PageAsk, StoredResponse, Turn
from support.history.spools import ACCESS, response_id, turn
from support.stores.storage_hooks import Witness

CONVERSATION = Conversation("conv_1", 1, 1)
ITEM = Item("msg_1", "message", b'{"a":1}', 1)


def store_of(*hooks: Witness, fail_open: bool = False) -> HookedStore:
    inner = MemoryStore(Bounds(), lambda: 5)
    named = [NamedHook(f"h{at}", hook, fail_open=fail_open) for at, hook in enumerate(hooks)]
    return HookedStore(inner, named)


def whole_turn() -> Turn:
    plain = turn()
    response = replace(plain.response, conversation_id="conv_1")
    return Turn(response, items=[ITEM], links=["msg_1"])


@contextmanager
def rejected(reason: str) -> Iterator[None]:
    with pytest.raises(StoreError, match=reason) as caught:
        yield
    assert caught.value.kind is StoreErrorKind.REJECTED


def on(operation: str, answer: Callable[[Payload], Reject | Replace]) -> Witness:
    """A hook that answers one operation."""
    return Witness(lambda name, payload: answer(payload) if name == operation else None)


async def test_a_turn_shows_itself_as_what_it_is_made_of() -> None:
    witness = Witness()
    store = store_of(witness)
    await store.create_conversation(ACCESS, CONVERSATION)
    await store.commit_turn(ACCESS, whole_turn())
    names = ["create_conversation", "store_response", "create_item", "link_items"]
    assert [name for name, _ in witness.before_saw] == names
    assert [name for name, _ in witness.after_saw] == names
    assert witness.before_saw[3][1] == Links("conv_1", ["msg_1"])
    assert witness.after_saw[3][1] == [1]
    context = witness.contexts[0]
    assert (context.tenant, context.principal) == ("acme", "key-1")
    assert context.headers == {"x-team": "red"}


async def test_one_no_and_nothing_of_a_turn_is_kept() -> None:
    for operation in ("store_response", "create_item", "link_items"):
        store = store_of(Witness(), on(operation, lambda _: Reject("not today")))
        await store.inner.create_conversation(ACCESS, CONVERSATION)
        with rejected("not today"):
            await store.commit_turn(ACCESS, whole_turn())
        assert await store.inner.get_response(ACCESS, response_id(1, 1)) is None
        page = await store.inner.list_items(ACCESS, "conv_1", PageAsk())
        assert page is not None
        assert page.items == []


async def test_a_hook_may_put_another_record_in_its_place() -> None:
    def hide(payload: Payload) -> Replace:
        assert isinstance(payload, Item)
        return Replace(replace(payload, document=b'{"a":"hidden"}'))

    second = Witness()
    store = store_of(on("create_item", hide), second)
    await store.create_conversation(ACCESS, CONVERSATION)
    await store.commit_turn(ACCESS, whole_turn())
    item = await store.inner.get_item(ACCESS, "msg_1")
    assert item is not None
    assert item.document == b'{"a":"hidden"}'
    seen = dict(second.before_saw)["create_item"]
    assert isinstance(seen, Item)
    assert seen.document == b'{"a":"hidden"}'


@pytest.mark.parametrize(
    "other",
    [CONVERSATION, replace(ITEM, id="msg_2"), Ids(())],
    ids=["another kind", "another id", "no record"],
)
async def test_a_hook_may_not_put_anything_else_there(other: Payload) -> None:
    store = store_of(on("create_item", lambda _: Replace(other)))
    with rejected("in place of"):
        await store.create_item(ACCESS, ITEM)
    assert await store.inner.get_item(ACCESS, "msg_1") is None


async def test_metadata_may_be_replaced_and_not_where_it_goes() -> None:
    def other(payload: Payload) -> Replace:
        assert isinstance(payload, module.Metadata)
        return Replace(replace(payload, metadata=b'{"x":"1"}'))

    store = store_of(on("update_conversation", other))
    await store.create_conversation(ACCESS, CONVERSATION)
    changed = await store.update_conversation(ACCESS, "conv_1", b"{}", now_us=2)
    assert changed is not None
    assert changed.metadata == b'{"x":"1"}'

    def elsewhere(payload: Payload) -> Replace:
        return Replace(module.Metadata("conv_2", b"{}"))

    with rejected("metadata"):
        await store_of(on("update_conversation", elsewhere)).update_conversation(
            ACCESS, "conv_1", b"{}", now_us=2
        )


async def test_what_is_read_is_told_once_for_each_call() -> None:
    witness = Witness()
    store = store_of(witness)
    await store.create_conversation(ACCESS, CONVERSATION)
    await store.append_items(
        ACCESS, "conv_1", [replace(ITEM, id=f"msg_{at}") for at in range(3)], now_us=1
    )
    witness.after_saw.clear()
    await store.newest_items(ACCESS, "conv_1", items_max=9, bytes_max=999)
    await store.find_items(ACCESS, ["msg_1", "msg_2"])
    await store.get_response_chain(ACCESS, response_id(1, 1), items_max=9, bytes_max=999)
    assert [name for name, _ in witness.after_saw] == [
        "list_items",
        "get_item",
        "get_response_chain",
    ]
    await store.ping(timeout_s=1)
    await store.purge(now_us=1, batch=1, timeout_s=1)
    assert len(witness.after_saw) == 3


async def test_a_hook_that_fails_is_a_no_unless_it_is_open() -> None:
    witness = Witness()
    witness.broken = True
    with rejected("the hook h0 failed"):
        await store_of(witness).create_item(ACCESS, ITEM)
    opened = store_of(witness, fail_open=True)
    await opened.create_item(ACCESS, ITEM)
    assert await opened.inner.get_item(ACCESS, "msg_1") == ITEM


async def test_a_hook_that_hangs_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EACH_S", 0.01)
    with rejected("the hook h0 failed"):
        await store_of(Witness(slow_s=30)).create_item(ACCESS, ITEM)


async def test_all_hooks_together_have_so_much_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALL_S", 0.02)
    slow = [Witness(slow_s=0.015) for _ in range(4)]
    with rejected("took too long"):
        await store_of(*slow).create_item(ACCESS, ITEM)
    assert len(slow[3].before_saw) == 0


async def test_what_is_written_stays_whatever_happens_afterwards() -> None:
    class Late(Witness):
        async def after(self, *_: object) -> None:
            raise LookupError("a bug")

    store = store_of(Late())
    assert await store.create_item(ACCESS, ITEM) == ITEM
    done = await store.store_response(ACCESS, turn().response)
    assert done == response_id(1, 1)
    with rejected("the hook h0 failed"):
        await store.get_item(ACCESS, "msg_1")


async def test_a_store_says_itself_what_it_does_not_like() -> None:
    witness = Witness()
    store = store_of(witness)
    with pytest.raises(StoreError) as caught:
        await store.commit_turn(ACCESS, whole_turn())
    assert caught.value.kind is StoreErrorKind.BAD_REFERENCE
    assert witness.after_saw == []


def test_hooks_are_loaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("audit", "support.stores.storage_hooks:nobody", module.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [point])
    (one,) = module.load_hooks(["audit"])
    assert isinstance(one.hook, Witness)
    assert not one.fail_open
    assert module.load_hooks(["audit:open"])[0].fail_open
    for word in ("other", "audit:maybe", ""):
        with pytest.raises(ValueError, match="audit"):
            module.load_hooks([word])


async def test_responses_alone_are_shown_too() -> None:
    def other(payload: Payload) -> Replace:
        assert isinstance(payload, StoredResponse)
        return Replace(replace(payload, model="hidden"))

    store = store_of(on("store_response", other))
    await store.store_response(ACCESS, turn().response)
    found = await store.inner.get_response(ACCESS, response_id(1, 1))
    assert found is not None
    assert found.model == "hidden"
