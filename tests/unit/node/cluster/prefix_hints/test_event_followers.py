"""Which nodes of a cluster follow what an engine has cached."""

from dataclasses import replace
from pathlib import Path

from support.fleet.fleet_world import FleetNode, FleetWorld, fleet_world
from support.fleet.kv_event_subscription import batches


def prepare(world: FleetWorld) -> None:
    """Give every engine, as each node reaches it, KV events."""
    for node in world.nodes.values():
        for engine in node.engines.values():
            engine.abilities = replace(engine.abilities, kv_events=True)
            engine.kv_script = batches(1, stays=True)


def followed(node: FleetNode) -> list[str]:
    return [worker.url.host for worker in node.fleet.workers() if worker.following]


async def test_of_three_nodes_all_follow_every_engine(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2", "n3") as world:
        prepare(world)
        world["n1"].list_static("a", "b")
        await world.until(lambda node: sorted(followed(node)) == ["a", "b"])


async def test_of_many_nodes_two_follow_an_engine_and_another_takes_over_from_one_that_dies(
    tmp_path: Path,
) -> None:
    names = [f"n{number}" for number in range(6)]
    async with fleet_world(tmp_path, *names, hosts=("a",)) as world:
        prepare(world)

        def following() -> list[str]:
            return [node.name for node in world.all() if followed(node)]

        def as_agreed(node: FleetNode) -> bool:
            if not node.ready("a"):
                return False
            worker = node.worker("a")
            return following() == sorted(node.registry.outlook.probers(worker.id))

        world["n0"].list_static("a")
        await world.until(as_agreed)
        before = following()
        assert len(before) == 2
        world.kill(before[0])
        await world.until(as_agreed)
        after = following()
        assert len(after) == 2
        assert before[1] in after
