"""Leases and what is minted under them, in any weather: nothing is minted twice, and there is an owner soon after."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import score, slot_of
from support.rights.lease_faults import Weather
from support.rights.lease_invariants import AMOUNT
from support.rights.lease_world import KEYS, Node, World

SLOT = slot_of(KEYS[0])
NAMES = ("a", "b", "c", "d", "e", "f", "g")


def storm(world: World, rng: Random, node: Node) -> None:
    """Let one thing go wrong."""
    names = list(world.nodes)
    match rng.randrange(7):
        case 0:
            node.crash(lose_disk=rng.random() < 0.2)
            later_ms = world.now_ms + rng.randint(10, 3_000)
            world.at(later_ms, lambda: None if node.up else world.restart(node))
        case 1:
            node.paused_until_ms = world.now_ms + rng.randint(100, 5_000)
        case 2:
            side = frozenset(rng.sample(names, rng.randint(1, len(names))))
            world.groups = [side, frozenset(names) - side]
        case 3:
            world.groups = []
        case 4:
            world.weather.loss = rng.choice([0.0, 0.1, 0.3])
        case 5:
            node.offset_ms += rng.choice([-3_000, -100, 100, 3_000])
        case _:
            world.groups = [frozenset(names) - {node.name}, frozenset({node.name})]


def begun(seed: int, count: int, *, disks: bool) -> World:
    """Return a cluster with a roster of all, in ordinary rain."""
    weather = Weather(loss=0.1, twice=0.1, late=0.05, delay_ms=(1, 40))
    world = World(seed, names=NAMES[:count], weather=weather, skew=True)
    if not disks:
        for node in world.nodes.values():
            node.disk = None
    world.start()
    return world


def stormy(seed: int, count: int, *, disks: bool) -> World:
    """Return a cluster that has been through a lot."""
    world = begun(seed, count, disks=disks)
    rng = Random(seed)
    world.run(2_000)
    for _ in range(12):
        storm(world, rng, world.nodes[rng.choice(NAMES[:count])])
        world.run(rng.randint(50, 1_500))
    return world


def calm(world: World) -> None:
    """Let everything be well again, but for what was said before."""
    world.weather, world.groups = Weather(), []
    for node in world.nodes.values():
        node.paused_until_ms = 0
        if not node.up:
            world.restart(node)


@settings(max_examples=24, deadline=None)
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 7), disks=st.booleans())
def test_no_window_is_minted_twice_no_promise_is_broken_and_no_term_has_two_owners(
    seed: int, count: int, *, disks: bool
) -> None:
    world = stormy(seed, count, disks=disks)
    assert all(total <= AMOUNT for total in world.minted().values())


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 7))
def test_there_is_an_owner_within_a_second_and_a_half_of_the_healing(seed: int, count: int) -> None:
    world = stormy(seed, count, disks=True)
    rng = Random(seed)
    for node in world.nodes.values():
        if not node.up:
            world.restart(node)
        node.paused_until_ms = 0
    side = frozenset(rng.sample(NAMES[:count], count // 2))
    world.groups = [side, frozenset(NAMES[:count]) - side - {NAMES[0]}, frozenset(NAMES[0])]
    world.run(4_000)
    calm(world)
    world.run_until(lambda: world.owner(SLOT) != "", within_ms=1_500)


@pytest.mark.parametrize("seed", range(8))
def test_a_crashed_owner_is_replaced_when_its_promises_have_run_out(seed: int) -> None:
    world = World(seed, names=NAMES[:5], skew=True)
    world.start()
    world.run_until(lambda: world.owner(SLOT) != "", within_ms=1_500)
    world.run(500 + 37 * seed)
    owner = world.owner(SLOT)
    world.nodes[owner].crash()
    took_ms = world.run_until(lambda: world.owner(SLOT) not in ("", owner), within_ms=1_400)
    assert took_ms >= 700


def test_a_node_alone_owns_everything_as_soon_as_it_may_vote() -> None:
    world = World(1, names=["a"])
    world.start()
    took_ms = world.run_until(lambda: world.owner(SLOT) == "a", within_ms=1_250)
    assert took_ms >= 1_100
    world.run(3_000)
    assert max(world.minted().values()) == AMOUNT


def test_nothing_is_said_where_nothing_is_limited() -> None:
    world = World(1, names=NAMES[:3], keys=())
    world.start()
    world.run(3_000)
    assert not any(node.holders for node in world.nodes.values())


def test_the_best_candidate_that_comes_back_gets_its_slot_at_the_border_of_a_window() -> None:
    world = World(3, names=NAMES[:5])
    world.start()
    best = max(NAMES[:5], key=lambda name: score(SLOT, name))
    world.nodes[best].crash()
    world.run_until(lambda: world.owner(SLOT) != "", within_ms=3_000)
    world.run(4_000)
    world.restart(world.nodes[best])
    took_ms = world.run_until(lambda: world.owner(SLOT) == best, within_ms=9_000)
    assert took_ms >= 5_000
    assert (world.nodes[best].wall_ms % 1_000) < 400


def test_a_paused_candidate_is_passed_over_by_the_next_one() -> None:
    world = World(3, names=NAMES[:5])
    world.start()
    ranked = sorted(NAMES[:5], key=lambda name: -score(SLOT, name))
    world.nodes[ranked[0]].paused_until_ms = 5_000
    world.run_until(lambda: world.owner(SLOT) == ranked[1], within_ms=1_800)


def test_an_owner_that_wakes_up_too_late_owns_nothing() -> None:
    world = World(4, names=NAMES[:5])
    world.start()
    world.run_until(lambda: world.owner(SLOT) != "", within_ms=2_000)
    first = world.owner(SLOT)
    world.nodes[first].paused_until_ms = world.now_ms + 3_000
    world.run(2_990)
    assert world.owner(SLOT) not in ("", first)
    world.run(500)
    assert world.owner(SLOT) not in ("", first)


def test_a_new_owner_mints_late_what_the_old_one_had_not_minted() -> None:
    world = World(5, names=NAMES[:5], keys=["s=1#requests/10000"])
    world.start()
    world.run_until(lambda: sum(world.minted().values()) > 200, within_ms=8_000)
    world.nodes[world.owner(SLOT)].crash()
    before = dict(world.minted())
    world.run(6_000)
    assert any(world.minted()[place] > before[place] for place in before)
    assert all(total <= AMOUNT for total in world.minted().values())


def test_a_budget_of_a_minute_survives_a_restart_of_everything() -> None:
    world = World(6, names=NAMES[:3], keys=["s=1#cost/60000"])
    world.start()
    world.run(15_000)
    before = world.minted()
    assert sum(before.values()) > 300
    for node in world.nodes.values():
        node.crash()
    world.run(200)
    for node in world.nodes.values():
        world.restart(node)
    world.run(10_000)
    assert all(world.minted()[place] > total for place, total in list(before.items())[-1:])
    assert all(total <= AMOUNT for total in world.minted().values())
