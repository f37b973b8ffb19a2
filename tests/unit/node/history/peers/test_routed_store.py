import asyncio
from pathlib import Path

import msgspec
import pytest

from smg_node.core.errors import ErrorKind
from smg_node.history.errors import HolderAwayError, failure_of
from smg_node.history.ports import Direct, Kept
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import holder_tag, thread_of
from smg_storage.records import (
    Access,
    PageAsk,
    Status,
    Turn,
)
from support.history.peer_histories import ACCESS, SHORT, Three, held_node, memory, three_nodes
from support.history.spools import spool_at

UNAVAILABLE = StoreErrorKind.UNAVAILABLE


@pytest.fixture
def three() -> Three:
    return three_nodes()


# ── Whose it is ──────────────────────────────────────────────────────────────


async def test_what_is_here_is_asked_of_nobody(three: Three) -> None:
    mine, nobodys = three.response("a"), three.response("a", id="resp_of_another_gateway")
    unknown = three.response("stranger")
    for record in (mine, nobodys, unknown):
        assert await three.a.holders.store_response(ACCESS, record) == record.id
        assert await three.a.own.get_response(ACCESS, record.id) == record
        assert await three.a.holders.get_response(ACCESS, record.id) == record
    await three.a.holders.commit(ACCESS, Turn(three.response("a")))
    await three.a.holders.find_items(ACCESS, ["msg_x", three.id("msg", "a")])
    assert three.net.asked == []


async def test_what_another_node_holds_is_asked_of_it_once(three: Three) -> None:
    record = three.response("b")
    await three.a.holders.store_response(ACCESS, record)
    assert await three.b.own.get_response(ACCESS, record.id) == record
    assert await three.c.holders.get_response(ACCESS, record.id) == record
    assert three.net.asked == [("a", "b"), ("c", "b")]
    assert three.a.counted == [("store_response", "ok")]
    rival = Access(tenant="rival")
    assert await three.c.holders.get_response(rival, record.id) is None


async def test_who_is_asked_never_asks_on(three: Three) -> None:
    record = three.response("c")
    await three.c.own.store_response(ACCESS, record)
    asked = three.a.holders._elsewhere.store("b")
    assert await asked.get_response(ACCESS, record.id) is None
    assert three.net.asked == [("a", "b")]


def test_what_begins_is_of_this_node_and_what_goes_on_stays_where_it_is(three: Three) -> None:
    new = three.a.holders.thread()
    assert new.startswith(holder_tag("a"))
    assert len(new) == 12
    assert new != three.a.holders.thread()
    theirs = three.id("resp", "b")
    assert three.a.holders.thread(theirs) == thread_of(theirs)
    for nobodys in ("resp_of_another_gateway", three.id("resp", "stranger")):
        goes_on = three.a.holders.thread(nobodys)
        assert goes_on == holder_tag("a") + thread_of(nobodys)[6:]
        assert three.a.holders.thread(nobodys) == goes_on


async def test_items_are_found_wherever_they_are(three: Three) -> None:
    ids = [three.id("msg", name) for name in "abcabc"] + ["msg_own"]
    for each in ids:
        await three.a.holders.create_item(ACCESS, three.item(each))
    three.net.asked.clear()
    wanted = [*ids, three.id("msg", "b"), "msg_nobody"]
    found = await three.a.holders.find_items(ACCESS, wanted)
    assert sorted(found) == sorted(ids)
    assert sorted(three.net.asked) == [("a", "b"), ("a", "c")]
    three.net.states["c"] = "dead"
    with pytest.raises(HolderAwayError) as caught:
        await three.a.holders.find_items(ACCESS, wanted)
    assert caught.value.node == "c"


async def test_a_clients_own_ids_are_looked_for_beside_the_thread(three: Three) -> None:
    room = await three.conversation("b")
    own, copied = three.item("msg_own"), three.item(three.id("msg", "c"))
    await three.c.holders.append_items(ACCESS, room, [own, copied], now_us=1)
    beside = msgspec.structs.replace(ACCESS, thread=thread_of(room))
    for each in (own, copied):
        assert await three.a.holders.get_item(ACCESS, each.id) is None
        assert await three.a.holders.get_item(beside, each.id) == each
        assert await three.a.holders.find_items(beside, [each.id]) == {each.id: each}
    here = three.item("msg_here")
    await three.a.holders.create_item(ACCESS, here)
    assert await three.a.holders.get_item(beside, "msg_here") == here
    assert dict(await three.a.holders.find_items(beside, [own.id, here.id, "msg_none"])) == {
        own.id: own,
        here.id: here,
    }
    await three.a.holders.create_item(beside, three.item("msg_beside"))
    assert await three.b.own.get_item(ACCESS, "msg_beside") is not None


async def test_only_this_nodes_own_orphans_are_seen(three: Three) -> None:
    for name in "ab":
        queued = three.response(name, status=Status.QUEUED, background=True, completed_us=0)
        await three.a.holders.store_response(ACCESS, queued)
        lease = await three.a.holders.claim_run(ACCESS, queued.id, "x", now_us=1, until_us=2)
        assert lease is not None
    for node in (three.a, three.b, three.c):
        orphans = await node.holders.orphan_runs(now_us=9, limit=9, timeout_s=5)
        assert [thread_of(one.response_id)[:6] for one in orphans] == (
            [holder_tag(node.name)] if node.name != "c" else []
        )


# ── Away ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "words"), [("dead", "b, which holds"), ("left", "b, which holds")]
)
async def test_a_holder_that_is_gone_is_named_at_once(three: Three, state: str, words: str) -> None:
    three.net.states["b"] = state
    with pytest.raises(HolderAwayError, match=words) as caught:
        await three.a.holders.get_response(ACCESS, three.id("resp", "b"))
    assert caught.value.kind is UNAVAILABLE
    assert len(three.net.asked) == 1
    told = failure_of(caught.value)
    assert (told.kind, told.code) == (ErrorKind.OVERLOADED, "store_unavailable")
    assert "'b'" in told.message
    assert told.retry_after_s


async def test_a_holder_that_is_silent_costs_the_time_there_is(three: Three) -> None:
    three.net.faults += ["silent"] * 9
    with pytest.raises(HolderAwayError, match="in time"):
        await three.a.holders.get_response(SHORT, three.id("resp", "b"))
    assert three.a.counted == [("get_response", "unavailable")]


async def test_the_error_of_the_holders_own_store_is_told_as_it_is(three: Three) -> None:
    record = three.response("b")
    await three.a.holders.store_response(ACCESS, record)
    another = msgspec.structs.replace(record, model="other")
    with pytest.raises(StoreError) as caught:
        await three.a.holders.store_response(ACCESS, another)
    assert caught.value.kind is StoreErrorKind.CONFLICT
    with pytest.raises(StoreError) as caught:
        await three.a.holders.link_items(ACCESS, await three.conversation("b"), ["x"], now_us=1)
    assert (caught.value.kind, caught.value.missing) == (StoreErrorKind.BAD_REFERENCE, "x")


async def test_who_is_busy_is_asked_again(three: Three) -> None:
    record = three.response("b")
    three.net.faults += ["busy", "busy"]
    await three.a.holders.store_response(ACCESS, record)
    three.net.faults += ["busy", "busy"]
    assert await three.a.holders.delete_response(ACCESS, record.id)
    assert len(three.net.asked) == 6


async def test_a_write_whose_answer_is_lost_is_written_once(three: Three) -> None:
    room = await three.conversation("b")
    items = [three.item(three.id("msg", "b")) for _ in range(3)]
    response = three.response("b", conversation_id=room)
    turn = Turn(response=response, items=items, links=[item.id for item in items])
    three.net.asked.clear()
    three.net.faults += ["lost", "unreachable", "lost"]
    kept = await three.a.holders.commit(ACCESS, turn)
    assert len(three.net.asked) == 4
    page = await three.b.own.list_items(ACCESS, room, PageAsk(newest_first=False))
    assert page is not None
    assert list(page.items) == items
    assert list(kept.positions) == list(page.positions)


async def test_what_cannot_be_done_twice_is_not_asked_again(three: Three) -> None:
    record = three.response("b")
    await three.a.holders.store_response(ACCESS, record)
    three.net.asked.clear()
    three.net.faults.append("lost")
    with pytest.raises(HolderAwayError):
        await three.a.holders.delete_response(ACCESS, record.id)
    assert len(three.net.asked) == 1


async def test_a_read_is_asked_twice_at_most(three: Three) -> None:
    record = three.response("b")
    await three.b.own.store_response(ACCESS, record)
    three.net.faults.append("unreachable")
    assert await three.a.holders.get_response(ACCESS, record.id) == record
    three.net.faults += ["unreachable", "unreachable"]
    with pytest.raises(HolderAwayError):
        await three.a.holders.get_response(ACCESS, record.id)
    assert len(three.net.asked) == 4


async def test_what_was_made_waits_for_a_holder_that_is_started_again(three: Three) -> None:
    record = three.response("b")
    three.net.states["b"] = "left"

    async def returns() -> None:
        await asyncio.sleep(0.1)
        three.net.states["b"] = "alive"

    async with asyncio.TaskGroup() as group:
        group.create_task(returns())
        await three.a.holders.commit(ACCESS, Turn(record))
    assert await three.b.own.get_response(ACCESS, record.id) == record


async def test_a_foreign_turn_never_waits_on_this_nodes_disk(three: Three, tmp_path: Path) -> None:
    class Spooling(Direct):
        """Puts on the disk whatever it is given."""

        def __init__(self) -> None:
            super().__init__(memory(three.clock))
            self.spool = spool_at(tmp_path)

        async def commit(self, access: Access, turn: Turn) -> Kept:
            await self.spool.add(access, turn)
            return Kept(spooled=True)

    keeper = Spooling()
    d = held_node(three.net, "d", keeper.store, keeper=keeper)
    three.net.states["b"] = "dead"
    for write in (d.holders.commit, d.holders.write):
        with pytest.raises(HolderAwayError):
            await write(SHORT, Turn(three.response("b")))
    assert keeper.spool.turns == 0
    assert (await d.holders.commit(ACCESS, Turn(three.response("d")))).spooled
    # It may wait on its holder's disk, and who made it is told so.
    assert (await three.a.holders.commit(ACCESS, Turn(three.response("d")))).spooled
    assert keeper.spool.turns == 2
    await keeper.spool.close()
