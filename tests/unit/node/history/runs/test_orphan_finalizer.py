"""Runs whose owners are gone end, once and truthfully, whoever dies over that."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from smg_node.history.runs.event_codec import packed
from smg_node.history.runs.orphan_finalizer import OrphanFinalizer
from smg_node.history.runs.orphan_recovery import BATCH
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, EventBlob, Lease, Status, Turn
from support.answers.generations import call, whole
from support.history.orphan_stores import Away, Death, Dying
from support.history.orphan_world import OrphanWorld


@pytest.fixture
def world(tmp_path: Path) -> OrphanWorld:
    return OrphanWorld(tmp_path)


# ── What becomes of them ─────────────────────────────────────────────────────


@pytest.mark.parametrize("wanted", [False, True])
async def test_a_run_ends_as_what_it_is_wherever_it_was_cut(
    world: OrphanWorld, wanted: bool
) -> None:
    node = world.node("a")
    node.peers.since["b"] = 1
    for cut in range(17):
        run = await world.run_of("b/0", cut=cut, blobs=3)
        if wanted:
            await world.store.request_cancel(world.access, run.id)
        node.peers.since["b"] += 1
        await node.adopter.look()
        shown = await world.ended(run)
        assert shown["status"] == ("cancelled" if wanted else "failed")
        assert (shown["error"] is None) == wanted
    assert node.adopter.adopted == {
        "failed": 0 if wanted else 17,
        "cancelled": 17 if wanted else 0,
        "lost": 0,
        "error": 0,
    }


async def test_its_items_are_found_and_nothing_is_added_to_a_conversation(
    world: OrphanWorld,
) -> None:
    node = world.node("a")
    node.peers.since["b"] = 1
    run = await world.run_of("b/0")
    await node.adopter.look()
    shown = await world.ended(run)
    (asked,) = json.loads(run.input)
    ids = [asked["id"], *(item["id"] for item in shown["output"])]
    found = await world.store.find_items(world.access, ids)
    assert [json.loads(found[one].document) for one in ids] == [asked, *shown["output"]]
    final = await world.row(run)
    assert final.completed_us == world.clock.now_us
    assert final.expires_us == world.clock.now_us + 30 * 86_400_000_000
    world.pass_s(3_600 + 600 - 1)
    assert await world.log(run)
    world.pass_s(2)
    assert await world.log(run) == []


async def test_a_run_whose_conversation_is_gone_ends_too(world: OrphanWorld) -> None:
    node = world.node("a")
    node.peers.since["b"] = 1
    run = await world.run_of("b/0", conversation="conv_gone")
    await node.adopter.look()
    shown = await world.ended(run)
    assert (shown["status"], len(shown["output"])) == ("failed", 2)


@pytest.mark.parametrize(
    "blob", [EventBlob(0, 2, b"garbage"), EventBlob(5, 7, b"late"), None], ids=["garbage", "late", "odd"]
)  # fmt: skip
async def test_a_damaged_log_keeps_no_run_from_ending(
    world: OrphanWorld, blob: EventBlob | None, caplog: pytest.LogCaptureFixture
) -> None:
    node = world.node("a")
    node.peers.since["b"] = 1
    run = await world.run_of("b/0", cut=0)
    if blob is None:
        other = await world.run_of("c/0")
        # Its events are whole, but none can come first: it is the log of nothing.
        (told,) = (await world.log(other))[4:5]
        blob = packed([told._replace(sequence=0)])
    await world.store.append_events(world.access, run.id, [blob], expires_us=0, token=1)
    await node.adopter.look()
    final = await world.row(run)
    assert final.status is Status.FAILED
    assert json.loads(final.response)["output"] == []
    assert "makes no sense" in caplog.text


async def test_a_damaged_object_is_no_run_for_ever(world: OrphanWorld) -> None:
    node = world.node("a")
    node.peers.since["b"] = 1
    run = await world.run_of("b/0")
    odd = replace(run, id=run.id[:-1] + "g", response=b"[", input=b"[")
    await world.store.store_response(world.access, odd)
    await node.adopter.look()
    assert (await world.row(odd)).status is Status.FAILED
    assert (await world.ended(run))["status"] == "failed"


async def test_many_are_ended_a_few_at_a_time(world: OrphanWorld) -> None:
    store = Away(world)
    node = world.node("a", store=store)
    node.peers.since["b"] = 1
    runs = [
        await world.run_of("b/0", events=whole(call("{}")), cut=n % 5) for n in range(BATCH + 50)
    ]
    theirs = await world.run_of("c/0", leased_s=15)
    await node.adopter.look()
    for run in runs:
        assert (await world.row(run)).status is Status.FAILED
    assert await world.is_untouched(theirs)
    assert store.asked.count("orphan_runs") == 2
    assert 1 < store.busiest <= 4


async def test_an_owner_that_was_only_slow_writes_nothing_more(world: OrphanWorld) -> None:
    node = world.node("a")
    run = await world.run_of("b/0", cut=5)
    slow = Lease("acme", run.id, run.owner, 1, run.lease_until_us)
    node.peers.since["b"] = 1
    await node.adopter.look()
    shown, log = await world.ended(run), await world.log(run)
    late = packed([log[-1]._replace(sequence=len(log))])
    for write in (
        lambda: world.store.renew_run(world.access, slow, until_us=1 << 61),
        lambda: world.store.append_events(world.access, run.id, [late], expires_us=0, token=1),
        lambda: world.store.commit_turn(world.access, Turn(response=run, token=1)),
    ):
        with pytest.raises(StoreError) as refused:
            await write()
        assert refused.value.kind is StoreErrorKind.CONFLICT
    assert await world.ended(run) == shown
    assert await world.log(run) == log


async def test_who_comes_back_before_the_claim_keeps_its_run(world: OrphanWorld) -> None:
    node = world.node("a")
    run = await world.run_of("b/0", leased_s=0)
    node.peers.since["b"] = 1
    stale = await world.store.orphan_runs(now_us=1 << 61, limit=1, timeout_s=9)
    run = await world.beaten(run)
    assert await node.adopter._adopt(stale[0]) == "lost"
    assert await world.is_untouched(run)
    await world.store.delete_response(world.access, run.id)
    assert await node.adopter._adopt(stale[0]) == "lost"


async def test_what_was_left_so_long_ago_that_its_log_is_over_ends_too(world: OrphanWorld) -> None:
    node = world.node("a")
    run = await world.run_of("b/0", cut=8)
    world.pass_s(3 * 3_600)
    assert await world.log(run) == []
    await node.adopter.look()
    shown = await world.ended(run)
    assert (shown["status"], shown["output"]) == ("failed", [])


async def test_one_that_cannot_be_ended_keeps_no_other_from_its_end(
    world: OrphanWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = world.node("a")
    node.peers.since["b"] = 1
    odd, run = await world.run_of("b/0", cut=8), await world.run_of("b/0", cut=8)
    bury = OrphanFinalizer.bury

    async def mistaken(self: OrphanFinalizer, access: Access, held: Lease) -> str:
        assert held.response_id != odd.id, "a mistake"
        return await bury(self, access, held)

    monkeypatch.setattr(OrphanFinalizer, "bury", mistaken)
    await node.adopter.look()
    assert (node.adopter.adopted["error"], node.adopter.adopted["failed"]) == (1, 1)
    assert (await world.row(run)).status is Status.FAILED
    assert "a mistake" in caplog.text
    monkeypatch.undo()
    world.pass_s(15)
    await node.adopter.look()
    assert (await world.ended(odd))["status"] == "failed"


# ── Dying over it ────────────────────────────────────────────────────────────

CALLS = 9
"""Of the store, for one adoption: orphans, claim, row, log and its end, append, log again, items, commit."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(2, CALLS + 2))
async def test_who_dies_over_it_is_followed_by_another(
    world: OrphanWorld, at: int, after: bool
) -> None:
    run = await world.run_of("b/0", cut=8)
    dying = Dying(world, at, after=after)
    first = world.node("a", store=dying)
    first.peers.since["b"] = 1
    died = False
    try:
        await first.adopter.look()
    except (Death, BaseExceptionGroup):
        died = True
    assert died == (at <= CALLS)
    world.living.remove("a")
    second = world.node("c")
    second.peers.since |= {"a": 2, "b": 1}
    await second.adopter.look()
    assert (await world.ended(run))["status"] == "failed"
    over = not died or (at == CALLS and after)
    assert second.adopter.adopted["failed"] == (0 if over else 1)


@pytest.mark.parametrize(
    "operation",
    ["claim_run", "get_response", "read_events", "append_events", "find_items", "commit_turn"],
)
async def test_what_cannot_be_done_now_is_done_later(world: OrphanWorld, operation: str) -> None:
    store = Away(world)
    node = world.node("a", store=store)
    node.peers.since["b"] = 1
    run = await world.run_of("b/0", cut=8)
    store.away = frozenset({operation})
    await node.adopter.look()
    assert node.adopter.adopted["error"] == 1
    assert not (await world.row(run)).status.is_final
    store.away = frozenset()
    world.pass_s(15)
    await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"
