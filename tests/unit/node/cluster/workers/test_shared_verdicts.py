"""Nodes look after workers together, and know what the others have open there."""

import asyncio
from pathlib import Path

from smg_node.http.ports.node import WorkerRequest
from support.engines.fake_engine import card
from support.fleet.fleet_world import fleet_world

A = WorkerRequest("grpc://a:1")


async def test_of_many_nodes_two_look_at_a_worker(tmp_path: Path) -> None:
    names = [f"n{at}" for at in range(6)]
    hosts = [f"e{at}" for at in range(6)]
    async with fleet_world(tmp_path, *names, hosts=hosts) as world:
        world["n0"].list_static(*hosts)
        await world.until(lambda node: node.ready(*hosts))
        await asyncio.sleep(0.3)
        before = world.looks()
        await asyncio.sleep(0.5)
        after = world.looks()
        duties = {
            name: sum(name in node.registry.outlook.probers(worker) for worker in node.ids())
            for name, node in world.nodes.items()
        }
        assert sum(duties.values()) == 2 * len(hosts)
        idle = [name for name in names if not duties[name]]
        looked = {name: after[name] - before[name] for name in names}
        assert all(looked[name] == 0 for name in idle)
        assert all(looked[name] > 0 for name in names if duties[name])


async def test_when_a_prober_dies_its_successor_looks_and_the_worker_stays(tmp_path: Path) -> None:
    names = [f"n{at}" for at in range(6)]
    async with fleet_world(tmp_path, *names) as world:
        view = world["n0"].desk.add(A)
        await world.until(lambda node: node.ready("a"))
        before = world["n0"].registry.outlook.probers(view.id)
        world.kill(before[0])
        live = world.all()[0]
        await world.until(lambda node: node.registry.outlook.probers(view.id) != before)
        (successor,) = set(live.registry.outlook.probers(view.id)) - set(before)
        await world.until(lambda node: successor in node.desk.worker(view.id).seen_by)
        assert all(node.ready("a") for node in world.all())


async def test_a_worker_that_dies_is_down_and_comes_back_on_all_nodes(tmp_path: Path) -> None:
    names = [f"n{at}" for at in range(6)]
    async with fleet_world(tmp_path, *names) as world:
        world["n0"].desk.add(A)
        await world.until(lambda node: node.ready("a"))
        for node in world.all():
            node.engines["a"].up = False
        await world.until(lambda node: not node.worker("a").routable)
        for node in world.all():
            node.engines["a"].up = True
        await world.until(lambda node: node.ready("a"))


async def test_a_broken_path_takes_a_worker_from_one_node_only(tmp_path: Path) -> None:
    names = [f"n{at}" for at in range(6)]
    async with fleet_world(tmp_path, *names) as world:
        view = world["n0"].desk.add(A)
        await world.until(lambda node: node.ready("a"))
        probers = world["n0"].registry.outlook.probers(view.id)
        bystander = next(node for node in world.all() if node.name not in probers)
        bystander.engines["a"].up = False
        await asyncio.sleep(0.2)
        assert bystander.ready("a")  # nobody told it, and it does not look
        bystander.worker("a").suspect()
        await world.until(lambda node: node.ready("a") == (node is not bystander))
        await asyncio.sleep(0.2)
        assert all(node.ready("a") for node in world.all() if node is not bystander)
        assert set(bystander.desk.worker(view.id).seen_by) == set(probers)
        bystander.engines["a"].up = True
        await world.until(lambda node: node.ready("a"))


async def test_all_nodes_notice_another_engine_at_the_address(tmp_path: Path) -> None:
    names = [f"n{at}" for at in range(6)]
    async with fleet_world(tmp_path, *names) as world:
        world["n0"].desk.add(A)
        await world.until(lambda node: node.ready("a"))
        for node in world.all():
            node.engines["a"].model_card = card("other")
        await world.until(lambda node: node.ready("a") and node.worker("a").model_name() == "other")


async def test_what_others_have_open_is_load_here(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2", "n3") as world:
        view = world["n1"].desk.add(A)
        await world.until(lambda node: node.ready("a"))
        world["n1"].worker("a").hold(100)
        world["n2"].worker("a").hold(20)
        world["n2"].worker("a").hold(3)
        await world.until(lambda node: node.worker("a").load.inflight == 3)
        assert [node.worker("a").load.tokens for node in world.all()] == [123] * 3
        (row,) = world["n1"].desk.cluster_workers()
        assert (row.requests_mine, row.requests_others) == (1, 2)
        assert (row.tokens_mine, row.tokens_others) == (100, 23)
        assert sorted(row.probers) == ["n1", "n2", "n3"]
        assert all(sight.up for sight in row.sights.values())
        assert row.version == str(world["n1"].shared.workers.get(view.id).version)  # type: ignore[union-attr]  # it is there
        world.kill("n2")
        world["n1"].worker("a").hold(1)
        await world.until(lambda node: node.worker("a").load.inflight == 2)


async def test_a_node_with_nothing_open_says_nothing_and_speaks_at_once_when_a_call_begins(
    tmp_path: Path,
) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        world["n1"].desk.add(A)
        await world.until(lambda node: node.ready("a"))
        await asyncio.sleep(0.5)
        loads = world["n1"].shared.load
        before = loads.publications
        await asyncio.sleep(0.6)
        assert loads.publications == before
        world["n1"].worker("a").hold(5)
        async with asyncio.timeout(0.2):
            while world["n2"].worker("a").load.inflight != 1:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0)
