"""Discovered workers: what sources find becomes workers of all nodes, beside what operators say."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smg_node.cluster.workers.discovered_workers import DiscoveredWorkers
from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import SmgError
from smg_node.discovery.sighting import Sighting, SightingState
from support.fleet.fleet_world import FleetNode, FleetWorld, fleet_world

READY, UNREADY, LEAVING = SightingState.READY, SightingState.UNREADY, SightingState.LEAVING
KIND = "kubernetes"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[FleetWorld]:
    async with fleet_world(tmp_path, "n0", "n1") as made:
        yield made


class Clock:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms


def findings(node: FleetNode, clock: Clock | None = None) -> DiscoveredWorkers:
    return DiscoveredWorkers(
        node.shared.workers,
        node.registry,
        me=node.name,
        is_held=lambda: True,
        now_ms=clock or Clock(),
    )


def seen(url: str, state: SightingState = READY, instance: str = "u1") -> Sighting:
    return Sighting(parse_worker_url(url), state, instance)


async def test_what_one_node_finds_is_routable_on_all(world: FleetWorld) -> None:
    findings(world["n0"]).put(KIND, "chat", seen("grpc://a:1?priority=60"))
    await world.until(lambda node: node.ready("a"))
    worker = world["n1"].worker("a")
    assert worker.declared.sources == ("kubernetes",)
    assert (worker.declared.instance, worker.url.priority) == ("u1", 60)


async def test_one_that_is_unready_gets_no_new_work_and_forgets_nothing(world: FleetWorld) -> None:
    found = findings(world["n0"])
    found.put(KIND, "chat", seen("grpc://a:1"))
    await world.until(lambda node: node.ready("a"))
    before = world["n1"].worker("a")

    for state, shown in ((UNREADY, "not_ready"), (LEAVING, "draining")):
        found.put(KIND, "chat", seen("grpc://a:1", state))
        await world.until(
            lambda node, word=state.value: node.worker("a").declared.state == word  # type: ignore[misc]  # bound now
        )
        assert not before.routable
        assert world["n1"].worker("a") is before
        assert before.shown_status.value == shown
        assert before.card is not None
        view = world["n1"].desk.worker("grpc://a:1")
        assert view.reason == f"kubernetes says that it is {state.value}"

    found.put(KIND, "chat", seen("grpc://a:1"))
    await world.until(lambda node: node.ready("a"))
    assert world["n1"].worker("a") is before


async def test_readiness_and_an_operators_drain_are_two_things(world: FleetWorld) -> None:
    found = findings(world["n0"])
    found.put(KIND, "chat", seen("grpc://a:1"))
    await world.until(lambda node: node.ready("a"))
    world["n1"].registry.drain("grpc://a:1", on=True)
    found.put(KIND, "chat", seen("grpc://a:1", UNREADY))
    found.put(KIND, "chat", seen("grpc://a:1"))
    await world.until(lambda node: node.worker("a").draining)
    assert not world["n0"].worker("a").routable
    world["n1"].registry.drain("grpc://a:1", on=False)
    await world.until(lambda node: node.ready("a"))


async def test_another_instance_at_the_address_is_another_engine(world: FleetWorld) -> None:
    found = findings(world["n0"])
    found.put(KIND, "chat", seen("grpc://a:1"))
    await world.until(lambda node: node.ready("a"))
    before = [node.worker("a") for node in world.all()]

    found.put(KIND, "chat", seen("grpc://a:1", instance="u2"))
    await world.until(lambda node: node.worker("a") not in before and node.ready("a"))
    assert len(world["n1"].ids()) == 1


async def test_by_hand_and_found_is_one_worker_whose_engine_is_still_the_same(
    world: FleetWorld,
) -> None:
    world["n1"].registry.add(parse_worker_url("grpc://a:1?label.rack=r2"))
    await world.until(lambda node: node.ready("a"))
    before = world["n0"].worker("a")
    found = findings(world["n0"])
    found.put(KIND, "chat", seen("a:1?label.pod=p&label.rack=r9"))
    await world.until(lambda node: node.worker("a").declared.sources == ("api", "kubernetes"))
    assert world["n0"].worker("a") is before
    assert dict(before.labels) == {"rack": "r2", "pod": "p"}

    found.drop(KIND, "a:1")
    await world.until(lambda node: node.worker("a").declared.sources == ("api",))
    assert world["n0"].worker("a") is before
    assert before.declared.instance == "u1", "nobody says that another one is there"


async def test_one_endpoint_is_one_worker_whatever_the_scheme(world: FleetWorld) -> None:
    found = findings(world["n0"])
    found.put(KIND, "chat", seen("a:1"))
    await world.until(lambda node: len(node.ids()) == 1)
    by_hand = world["n1"].registry.add(parse_worker_url("http://a:1"))
    assert len(world["n1"].shared.workers.records()) == 1
    (record,) = world["n0"].shared.workers.records()
    assert (record.id, record.spec.url) == (by_hand, "http://a:1")
    assert world["n0"].registry.resolve("http://a:1") == by_hand

    world["n1"].registry.add(parse_worker_url("http://b:1"))
    found.put(KIND, "chat", seen("b:1"))
    assert len(world["n0"].shared.workers.records()) == 2
    assert found.known(KIND)["b:1"].exists
    assert not found.known(KIND)["b:1"].misplaced


async def test_an_entry_moves_to_the_worker_that_is_registered_by_hand(world: FleetWorld) -> None:
    found = findings(world["n0"])
    world["n1"].registry.add(parse_worker_url("grpc://b:1"))
    found.put(KIND, "chat", seen("b:1"))
    await world["n1"].registry.remove("grpc://b:1", force=True)
    world["n1"].registry.add(parse_worker_url("http://b:1"))
    assert found.known(KIND)["b:1"].misplaced
    found.put(KIND, "chat", seen("b:1", instance="u2"))
    assert not found.known(KIND)["b:1"].misplaced
    (record,) = world["n0"].shared.workers.records()
    assert record.sources == ("api", "kubernetes")


async def test_what_an_operator_removed_is_remembered_on_every_node(world: FleetWorld) -> None:
    first, second = findings(world["n0"]), findings(world["n1"])
    first.put(KIND, "chat", seen("grpc://a:1"))
    await world.until(lambda node: node.ready("a"))
    await world["n1"].registry.remove("grpc://a:1", force=True)
    for found in (first, second, findings(world["n1"])):
        known = found.known(KIND)["a:1"]
        assert (known.withheld, known.exists, known.instance) == (True, False, "u1")

    world["n1"].registry.add(parse_worker_url("grpc://a:1"))
    assert second.known(KIND)["a:1"].exists
    second.put(KIND, "chat", seen("grpc://a:1"))
    (record,) = world["n0"].shared.workers.records()
    assert record.sources == ("api", "kubernetes")


async def test_what_another_node_dropped_is_known_with_its_instance(world: FleetWorld) -> None:
    clock = Clock()
    first, second = findings(world["n0"]), findings(world["n1"], clock)
    first.put(KIND, "chat", seen("grpc://a:1"))
    assert not second.known(KIND)["a:1"].own
    assert first.known(KIND)["a:1"].own
    clock.ms = 5_000
    first.drop(KIND, "a:1")
    assert second.dropped(KIND)["a:1"].instance == "u1"
    assert second.dropped(KIND)["a:1"].heard_ms == 5_000
    assert first.dropped(KIND) == {}, "it needs nobody to tell it what it did"
    clock.ms += 120_001
    assert second.dropped(KIND) == {}


async def test_what_changes_beside_an_entry_is_no_news_of_it(world: FleetWorld) -> None:
    clock = Clock()
    found = findings(world["n1"], clock)
    findings(world["n0"]).put(KIND, "chat", seen("grpc://a:1"))
    heard = found.known(KIND)["a:1"].heard_ms
    clock.ms = 9_000
    world["n0"].registry.change(
        "grpc://a:1", parse_worker_url("grpc://a:1?priority=9"), api_key=None, draining=None
    )
    assert found.known(KIND)["a:1"].heard_ms == heard
    assert found.urls_of(KIND, "chat")["a:1"].priority == 50


async def test_many_are_caught_up_with_in_steps(world: FleetWorld) -> None:
    writer = findings(world["n0"])
    for number in range(250):
        writer.put(KIND, "chat", seen(f"grpc://h{number}:1"))
    late = findings(world["n1"])
    assert len(list(late.catch_up())) == 2
    assert len(late.known(KIND)) == 250


async def test_a_file_lists_and_what_was_removed_stays_away(world: FleetWorld) -> None:
    found = findings(world["n0"])
    urls = [parse_worker_url("grpc://a:1"), parse_worker_url("grpc://b:1")]
    assert found.list_file(urls) == {}
    await world.until(lambda node: node.ready("a", "b"))
    assert world["n1"].worker("a").declared.sources == ("file@n0",)
    await world["n1"].registry.remove("grpc://a:1", force=True)
    assert list(found.list_file(urls)) == ["grpc://a:1"]
    assert found.list_file(urls[1:]) == {}
    await world.until(lambda node: node.ready("b"))

    world["n0"].registry.list_no_file()
    await world.until(lambda node: node.ids() == [])


async def test_what_cannot_be_registered_is_refused(world: FleetWorld) -> None:
    found = findings(world["n0"])
    with pytest.raises(SmgError, match="cannot be said"):
        found.put(KIND, "chat", seen("grpc://a:1", instance="x" * 200))
    found.drop(KIND, "nobody:1")
    await asyncio.sleep(0)
    assert found.known(KIND) == {}


async def test_probers_are_asked_what_they_say(world: FleetWorld) -> None:
    found = findings(world["n0"])
    found.put(KIND, "chat", seen("grpc://a:1"))
    await world.until(lambda node: node.ready("a"))
    assert found.calls_up(world["n0"].worker("a").id)
    assert not found.calls_up("w-unknown")
    assert not found.called_down(KIND, "a:1")
    assert not found.called_down(KIND, "nobody:1")


async def test_one_that_nobody_has_judged_yet_is_not_taken_for_dead(world: FleetWorld) -> None:
    found = findings(world["n0"])
    found.put(KIND, "chat", seen("grpc://a:1"))
    worker_id = found.known(KIND)["a:1"].worker_id
    assert world["n0"].registry.outlook.sights(worker_id) == []
    assert found.calls_up(worker_id)
    assert not found.called_down(KIND, "a:1")

    world["n0"].shared.verdicts.publish(worker_id, up=False, reason="refused", ttl_ms=60_000)
    assert not found.calls_up(worker_id)
    assert found.called_down(KIND, "a:1")


async def test_what_a_source_lets_go_of_stays_and_is_no_news_until_another_takes_it(
    world: FleetWorld,
) -> None:
    clock = Clock()
    mine, other = findings(world["n0"], clock), findings(world["n1"], clock)
    mine.put(KIND, "blue", seen("grpc://a:1"), keep=True)
    await world.until(lambda node: node.ready("a"))
    before = world["n1"].worker("a")
    heard = [one.known(KIND)["a:1"].heard_ms for one in (mine, other)]
    clock.ms = 9_000
    mine.release(KIND, "a:1")
    mine.release(KIND, "nowhere:1")
    for one in (mine, other):
        known = one.known(KIND)["a:1"]
        assert (known.owner, known.released, known.keep) == ("blue", True, True)
        assert known.heard_ms in heard
    other.put(KIND, "green", seen("grpc://a:1"))
    known = mine.known(KIND)["a:1"]
    assert (known.owner, known.released, known.keep, known.heard_ms) == (
        "green",
        False,
        False,
        9_000,
    )
    assert mine.dropped(KIND) == {}
    await world.until(lambda node: node.ready("a"))
    assert world["n1"].worker("a") is before
