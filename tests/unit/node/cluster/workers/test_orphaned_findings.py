"""A source that is taken out of the settings takes its workers along after a minute; one that is merely away does not."""

import pytest

from smg_mesh.shared import StateError
from smg_node.cluster.workers.orphaned_findings import APART_S, OrphanedFindings
from smg_node.discovery.orphans import TAKEN_OUT_S
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


async def test_what_the_cluster_defines_stays_though_nobody_here_follows_it(world: World) -> None:
    world.sources.definitions["b"].set(
        "kubernetes/chat", {"spec": "of a newer release"}, version=None
    )
    await world.pass_time(300)
    assert world.left() == ["w-x", "w-y"]


async def test_what_the_cluster_defines_no_more_goes_whoever_wrote_it(world: World) -> None:
    definitions = world.sources.definitions["b"]
    definitions.set("kubernetes/chat", {"spec": {"selector": "a=b"}}, version=None)
    world.sources.living.remove("a")
    await world.pass_time(60, "b")
    definitions.remove("kubernetes/chat", version=None)
    await world.pass_time(TAKEN_OUT_S - 10)
    assert world.left() == ["w-x", "w-y"]
    await world.pass_time(30 + 2 * APART_S)
    assert world.left() == []


async def test_what_its_source_keeps_stays_as_if_added_by_hand() -> None:
    world = World()
    world.sources.find("a", "x", keep=True)
    world.sources.find("a", "y")
    world.sources.find("b", "ending", keep=True, state="leaving")
    gone = world.sources.find("a", "gone", keep=True)
    world.sources.nodes["b"].remove(gone)
    await world.pass_time(TAKEN_OUT_S + 2 * APART_S)
    for name in "abc":
        assert world.sources.nodes.listed(name) == {"w-x": ("api",)}
    assert world.sources.nodes["c"].found(gone, "kubernetes") is None
    await world.pass_time(300)
    assert world.left() == ["w-x"]


async def test_what_is_to_stay_is_not_dropped_while_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.sources.find("a", "x", keep=True)

    def full(*given: object, **named: object) -> None:
        raise StateError("full", "the document is full")

    for name in "abc":
        monkeypatch.setattr(world.sources.nodes[name], "add", full)
    await world.pass_time(300)
    assert world.sources.nodes.listed("a") == {"w-x": ("kubernetes",)}


async def test_what_is_by_hand_as_well_stays_and_other_sources_too(world: World) -> None:
    world.sources.find("b", "z", name="other")
    spec = world.sources.nodes["a"].get("w-x")
    assert spec is not None
    world.sources.nodes["a"].add("w-x", "api", spec.spec)
    for _ in range(20):
        world.sources.reports["b"].publish("kubernetes", "other", {"standing": "ok"})
        await world.pass_time(5)
    assert world.left() == ["w-x", "w-z"]
