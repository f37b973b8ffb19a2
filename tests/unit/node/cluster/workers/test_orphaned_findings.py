"""A source that is taken out of the settings takes its workers along after a minute; one that is merely away does not."""

import pytest

from smg_node.cluster.workers.orphaned_findings import APART_S, TAKEN_OUT_S, OrphanedFindings
from support.shared_sources import SharedSources


class World:
    """Three nodes that all look after orphans."""

    def __init__(self) -> None:
        self.sources = SharedSources("a", "b", "c")
        self.now_s = 1_000.0
        self.orphans = {
            name: OrphanedFindings(shared, lambda: self.now_s)
            for name, shared in self.sources.shared.items()
        }

    async def pass_time(self, span_s: float, *reporting: str) -> None:
        """Let time pass, while these nodes report on the source."""
        for _ in range(int(span_s / 5)):
            self.now_s += 5
            for name in reporting:
                self.sources.reports[name].publish("kubernetes", "chat", {"standing": "waiting"})
            self.sources.pass_time(5_000)
            for name in self.sources.living:
                await self.orphans[name].tidy()

    def left(self) -> list[str]:
        return [record.id for record in self.sources.nodes["c"].records()]


@pytest.fixture
def world() -> World:
    made = World()
    for host in ("x", "y"):
        made.sources.find("a", host)
    return made


async def test_what_nobody_is_configured_with_goes_after_a_minute(world: World) -> None:
    await world.pass_time(TAKEN_OUT_S - 10)
    assert world.left() == ["w-x", "w-y"]
    await world.pass_time(10 + 2 * APART_S)
    assert world.left() == []
    assert sum(world.sources.nodes.world[name].writes for name in "abc") == 4


async def test_what_any_living_node_is_configured_with_stays(world: World) -> None:
    await world.pass_time(300, "b")
    assert world.left() == ["w-x", "w-y"]


async def test_put_back_in_time_nothing_happened(world: World) -> None:
    await world.pass_time(TAKEN_OUT_S - 15)
    await world.pass_time(60, "c")
    await world.pass_time(TAKEN_OUT_S - 15)
    assert world.left() == ["w-x", "w-y"]


async def test_where_the_node_that_found_them_does_not_live_nobody_knows(world: World) -> None:
    world.sources.living.remove("a")
    await world.pass_time(300)
    assert world.left() == ["w-x", "w-y"]


async def test_what_is_by_hand_as_well_stays_and_other_sources_too(world: World) -> None:
    world.sources.find("b", "z", name="other")
    spec = world.sources.nodes["a"].get("w-x")
    assert spec is not None
    world.sources.nodes["a"].add("w-x", "api", spec.spec)
    for _ in range(20):
        world.sources.reports["b"].publish("kubernetes", "other", {"standing": "ok"})
        await world.pass_time(5)
    assert world.left() == ["w-x", "w-z"]
