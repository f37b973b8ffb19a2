"""Runs whose owners are gone are found by one node: at once where that is known, else when their leases are over."""

import asyncio
from pathlib import Path

import pytest

from smg_node.history.runs.orphan_recovery import LEAN_LOOK_S, OWN_S, RETURN_S
from smg_storage.records import Status
from support.history.orphan_stores import Away
from support.history.orphan_world import Node, OrphanWorld
from support.http.raw_http import until


@pytest.fixture
def world(tmp_path: Path) -> OrphanWorld:
    return OrphanWorld(tmp_path)


def drawn_of(nodes: list[Node]) -> Node:
    (mine,) = [node for node in nodes if node.adopter.mine]
    return mine


# ── Which ────────────────────────────────────────────────────────────────────


async def test_what_a_dead_node_had_ends_at_once(world: OrphanWorld) -> None:
    nodes = [world.node(name) for name in ("a", "b", "c")]
    adopter = drawn_of(nodes)
    dead, *_ = [node for node in nodes if node is not adopter]
    run = await world.run_of(dead.lives.owner, cut=8)
    for node in nodes:
        if node is not dead:
            await node.adopter.look()
    assert await world.is_untouched(run)
    world.living.remove(dead.name)
    for node in nodes:
        if node is not dead:
            node.peers.since[dead.name] = 5
            await node.adopter.look()
    shown = await world.ended(run)
    assert shown["status"] == "failed"
    assert shown["error"]["code"] == "server_error"
    assert "died" in shown["error"]["message"]
    assert [item["status"] for item in shown["output"]] == ["incomplete"]
    assert drawn_of([node for node in nodes if node is not dead]).adopter.adopted["failed"] == 1
    assert sum(node.adopter.adopted["failed"] for node in nodes) == 1


async def test_who_is_in_doubt_leaves_it_to_another(world: OrphanWorld) -> None:
    nodes = [world.node(name) for name in ("a", "b", "c")]
    first = drawn_of(nodes)
    rest = [node for node in nodes if node is not first]
    for node in rest:
        node.peers.doubted.add(first.name)
    second = drawn_of(rest)
    run = await world.run_of("dead/0", cut=8)
    # It may live all the same: then both adopt, and one of them has it.
    for node in (first, second):
        node.peers.since["dead"] = 1
        await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"
    assert [node.adopter.adopted["failed"] for node in (first, second)] == [1, 0]


async def test_one_that_lives_keeps_its_runs_while_it_renews_them(world: OrphanWorld) -> None:
    adopter = drawn_of([world.node("a"), world.node("b")])
    other = next(name for name in world.living if name != adopter.name)
    run = await world.run_of(f"{other}/0")
    for _ in range(4):
        world.pass_s(14)
        run = await world.beaten(run)
        await adopter.adopter.look()
    assert await world.is_untouched(run)
    # Its lease is over, and it lives: the store was away, it seems. A lease later nobody believes that any more.
    world.pass_s(29)
    await adopter.adopter.look()
    assert await world.is_untouched(run)
    world.pass_s(2)
    await adopter.adopter.look()
    assert (await world.ended(run))["status"] == "failed"


async def test_without_a_mesh_a_lease_says_who_lives(world: OrphanWorld) -> None:
    node = world.node("a")
    run = await world.run_of("stranger/0")
    world.pass_s(14.9)
    await node.adopter.look()
    assert await world.is_untouched(run)
    world.pass_s(0.2)
    await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"


async def test_what_nobody_ever_had_ends(world: OrphanWorld) -> None:
    node = world.node("a")
    run = await world.run_of("", cut=0, leased_s=0)
    await node.adopter.look()
    assert (await world.ended(run))["output"] == []


@pytest.mark.parametrize("shared", [True, False])
async def test_a_process_ends_at_once_what_the_one_before_it_had(
    world: OrphanWorld, shared: bool
) -> None:
    world.store.is_shared = shared
    before = world.node("a")
    run = await world.run_of(before.lives.owner)
    # Another node does the adopting of what is shared, and yet.
    world.living = [*[name for name in "bcdefg" if world.node(name).adopter.mine][:1], "a"]
    after = world.node("a")
    assert after.lives.earlier == {before.lives.owner}
    await after.adopter.look()
    assert (await world.ended(run))["status"] == "failed"


async def test_a_namesake_is_no_earlier_process(world: OrphanWorld) -> None:
    namesake = world.node("a", disk="elsewhere")
    run = await world.run_of(namesake.lives.owner)
    node = world.node("a")
    await node.adopter.look()
    assert await world.is_untouched(run)
    # Without its disk, a process knows only when it is over what the one before it had.
    world.pass_s(15.1)
    await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"


async def test_own_runs_are_ended_if_they_are_not_under_way_any_more(world: OrphanWorld) -> None:
    node = world.node("a")
    run = await world.run_of(node.lives.owner)
    node.runs["acme", run.id] = "under way"
    world.pass_s(99)
    await node.adopter.look()
    assert await world.is_untouched(run)
    node.runs.clear()
    await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"


async def test_after_a_store_was_away_owners_have_time_to_come_back(world: OrphanWorld) -> None:
    store = Away(world)
    node = world.node("a", store=store)
    run = await world.run_of("stranger/0")
    dead = await world.run_of("dead/0")
    store.away = frozenset({"orphan_runs"})
    world.pass_s(60)
    await node.adopter.look()
    store.away = frozenset()
    node.peers.since["dead"] = 1
    await node.adopter.look()
    assert await world.is_untouched(run)
    # Who is dead does not come back.
    assert (await world.row(dead)).status is Status.FAILED
    world.pass_s(RETURN_S)
    await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"


async def test_what_a_dead_node_had_ends_whatever_its_clock_said(world: OrphanWorld) -> None:
    node = world.node("a")
    run = await world.run_of("b/0", leased_s=3_600)
    node.peers.since["b"] = 1
    await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"


async def test_leases_that_hold_are_looked_at_once_for_each_death(world: OrphanWorld) -> None:
    store = Away(world)
    node = world.node("a", store=store)

    async def ahead() -> bool:
        await node.adopter.look()
        return store.looked_until[-1] > world.clock.now_us

    assert [await ahead() for _ in range(3)] == [False, False, False]
    node.peers.since["b"] = 1
    assert [await ahead() for _ in range(3)] == [True, False, False]
    # It came back, and died again.
    node.peers.since["b"] = 2
    assert [await ahead() for _ in range(2)] == [True, False]
    # One process after another looks for what the one before it had.
    store.looked_until.clear()
    later = world.node("a", store=store)
    for _ in range(2):
        await later.adopter.look()
    assert [at > world.clock.now_us for at in store.looked_until] == [True, False]


async def test_who_is_not_drawn_looks_only_while_it_is_young(world: OrphanWorld) -> None:
    stores = {name: Away(world) for name in "ab"}
    nodes = [world.node(name, store=store) for name, store in stores.items()]
    idle = next(node for node in nodes if not node.adopter.mine)
    await idle.adopter.look()
    assert stores[idle.name].asked == ["orphan_runs"]
    world.pass_s(OWN_S)
    await idle.adopter.look()
    assert stores[idle.name].asked == ["orphan_runs"]
    # Before that, it leaves others' runs to the one that is drawn.
    other = world.node("c")
    run = await world.run_of("stranger/0", leased_s=-1)
    while other.adopter.mine:
        other = world.node(other.name + "c")
    await other.adopter.look()
    assert await world.is_untouched(run)


# ── How often ────────────────────────────────────────────────────────────────


async def test_it_looks_until_it_is_told_to_stop(world: OrphanWorld) -> None:
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)
        await asyncio.sleep(0)

    node = world.node("a", sleep=rest)
    run = await world.run_of("b/0", cut=8)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(node.adopter.run())
        await until(lambda: len(rests) > 2)
        node.peers.since["b"] = 1
        await until(lambda: node.adopter.adopted["failed"] == 1)
        task.cancel()
    assert set(rests) == {1.0}
    assert (await world.ended(run))["status"] == "failed"


async def test_what_nobody_shares_is_looked_at_less_unless_somebody_dies(
    world: OrphanWorld,
) -> None:
    world.store.is_shared = False
    store = Away(world)
    node = world.node("a", store=store)
    world.pass_s(OWN_S)
    for _ in range(3):
        await node.adopter.look()
    assert len(store.looked_until) == 1
    run = await world.run_of("b/0", cut=8)
    node.peers.since["b"] = 1
    await node.adopter.look()
    assert (await world.ended(run))["status"] == "failed"
    world.pass_s(LEAN_LOOK_S)
    await node.adopter.look()
    assert len(store.looked_until) == 3
