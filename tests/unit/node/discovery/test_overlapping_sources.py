"""Overlapping sources on virtual time: an endpoint that two of them show changes hands, and its worker is there all the time."""

import pytest

from smg_node.discovery.changes import RELEASED_MS
from smg_node.discovery.sighting import SightingState
from support.discovery_world import KIND, DiscoveryWorld

READY, LEAVING = SightingState.READY, SightingState.LEAVING
HOSTS = ("h0", "h1", "h2", "h3")


def world_of(*names: str, seed: int = 0) -> DiscoveryWorld:
    """Two sources that show all four hosts, when it is settled whose they are."""
    world = DiscoveryWorld(*names, seed=seed, sources=("blue", "green"))
    for host in HOSTS:
        world.change(host, (READY, f"u-{host}"))
    world.pass_time(8_000)
    assert owners(world) == dict.fromkeys(HOSTS, "blue")
    return world


def owners(world: DiscoveryWorld, node: str = "a") -> dict[str, str]:
    known = world[node].findings.known(KIND)
    return {endpoint.removesuffix(":1"): known[endpoint].owner for endpoint in sorted(known)}


def watched(world: DiscoveryWorld, span_ms: int, *hosts: str) -> None:
    """Let time pass, and see that these hosts are registered at every moment, on every node."""
    for _ in range(0, span_ms, 50):
        world.pass_time(50)
        for name in world.names:
            if name not in world.dead:
                missing = set(hosts) - set(world.registered(name))
                assert not missing, (world.now_ms, name, missing)


@pytest.mark.parametrize("seed", range(12))
def test_what_one_source_lets_go_of_the_other_takes_without_a_gap(seed: int) -> None:
    world = world_of("a", "b", "c", seed=seed)
    ids = {record.id for record in world["a"].workers.records()}
    world.select("blue", "h0")
    watched(world, 6_000, *HOSTS)
    assert owners(world) == {"h0": "blue", "h1": "green", "h2": "green", "h3": "green"}
    world.select("blue", *HOSTS)
    watched(world, 6_000, *HOSTS)
    assert owners(world) == dict.fromkeys(HOSTS, "blue")
    assert {record.id for record in world["c"].workers.records()} == ids


@pytest.mark.parametrize("seed", range(6))
def test_what_no_source_shows_goes_all_the_same(seed: int) -> None:
    world = world_of("a", "b", seed=seed)
    world.select("green", "h0", "h1")
    world.pass_time(3_000)
    world.change("h3", None)
    world.pass_time(1_500 + RELEASED_MS)
    assert owners(world) == {"h0": "blue", "h1": "blue", "h2": "blue"}
    world.select("blue", "h0")
    world.pass_time(1_500 + RELEASED_MS)
    assert owners(world) == {"h0": "blue", "h1": "green"}


@pytest.mark.parametrize("seed", range(6))
def test_a_source_that_shows_nothing_any_more_loses_all_to_the_other(seed: int) -> None:
    world = world_of("a", "b", "c", seed=seed)
    world.select("blue")
    watched(world, 40_000, *HOSTS)
    assert owners(world) == dict.fromkeys(HOSTS, "green")


@pytest.mark.parametrize("victim", ["a", "b", "c"])
def test_the_node_that_lets_go_may_die_in_the_middle_of_it(victim: str) -> None:
    world = world_of("a", "b", "c", seed=3)
    world.select("blue", "h0")
    watched(world, 350, *HOSTS)
    world.dead.add(victim)
    watched(world, 30_000, *HOSTS)
    last = next(name for name in world.names if name != victim)
    assert owners(world, last) == {"h0": "blue", "h1": "green", "h2": "green", "h3": "green"}
    assert not any(one.released for one in world[last].findings.known(KIND).values())


def test_a_pod_that_ends_is_not_held_for_anybody() -> None:
    world = world_of("a", "b")
    world.change("h0", (LEAVING, "u-h0"))
    world.pass_time(1_500)
    world.change("h0", None)
    world.pass_time(1_000)
    assert "h0" not in world.registered("a")


def removed(world: DiscoveryWorld, node: str = "c") -> dict[str, str]:
    known = world[node].findings.known(KIND)
    return {one: known[one].owner for one in sorted(known) if known[one].withheld}


def test_what_an_operator_removed_is_remembered_for_the_first_source_that_shows_it() -> None:
    world = DiscoveryWorld("a", "b", sources=("blue", "green"))
    world.select("blue")
    world.change("h0", (READY, "u-h0"))
    world.change("h1", (READY, "u-h1"))
    world.pass_time(8_000)
    (worker_id,) = [one.id for one in world["a"].workers.records() if "h1" in one.spec.url]
    world["a"].workers.remove(worker_id)
    world.pass_time(3_000)
    assert removed(world, "b") == {"h1:1": "green"}
    world.select("blue", "h0", "h1")
    world.pass_time(3_000)
    world.select("green", "h0")
    world.pass_time(10_000)
    assert removed(world, "b") == {"h1:1": "blue"}
    assert set(world.registered("b")) == {"h0"}
