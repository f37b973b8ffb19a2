"""The same key goes to the same worker at every node, also after a worker or a node died."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from smg_node.routing.policy import Asked, PolicyOptions
from smg_node.routing.routing_keys import sticky_id
from support.fleet.binding_table import NodeBindings, World
from support.fleet.worker_pools import View

WORKERS = [f"w-{at:012x}" for at in range(8)]
KEYS = [f"session-{at}" for at in range(30)]
# What each node believes is open at each worker; they hear of each other a little late.
LOADS = [{worker: 4 + (at + node) % 3 for at, worker in enumerate(WORKERS)} for node in range(3)]

POLICIES = [
    ("consistent_hashing", False),
    ("prefix_hash", False),
    ("manual", False),
    ("random", True),
    ("round_robin", True),
    ("power_of_two", True),
    ("passthrough", True),
    ("consistent_hashing", True),
    ("prefix_hash", True),
    ("manual", True),
]


def nodes(world: World, *, sticky: bool, workers: Sequence[str] = WORKERS) -> list[View]:
    return [
        View(f"n{at}", workers, world.node(), loads=LOADS[at], sticky=sticky) for at in range(3)
    ]


def asked(key: str) -> Asked:
    """One client: its key, and a conversation that begins the same each time."""
    return Asked("m", key=key, ids=[ord(letter) for letter in key * 30])


def placed(views: Sequence[View], policy: str, keys: Sequence[str] = KEYS) -> list[list[str]]:
    """Return for each key where each node sends it."""
    return [[view.place(policy, asked(key)) for view in views] for key in keys]


def agreed(rows: Sequence[Sequence[str]]) -> int:
    return sum(len(set(row)) == 1 for row in rows)


@pytest.mark.parametrize(("policy", "sticky"), POLICIES)
@pytest.mark.parametrize("late", [False, True])
def test_30_of_30_keys_agree_on_three_nodes(policy: str, sticky: bool, late: bool) -> None:
    """Also when the nodes have not heard of each other's bindings: nobody needs to be asked."""
    world = World(held=late)
    assert agreed(placed(nodes(world, sticky=sticky), policy)) == 30


@pytest.mark.parametrize(("policy", "sticky"), POLICIES)
@pytest.mark.parametrize("late", [False, True])
def test_they_agree_after_one_worker_died(policy: str, sticky: bool, late: bool) -> None:
    world = World(held=late)
    views = nodes(world, sticky=sticky)
    before = placed(views, policy)
    world.deliver()
    dead = before[0][0]
    for view in views:
        view.away = [dead]
    after = placed(views, policy)
    assert agreed(after) == 30
    assert dead not in {worker for row in after for worker in row}
    # Nobody moved whose worker lives.
    assert all(was == now for was, now in zip(before, after, strict=True) if was[0] != dead)


@pytest.mark.parametrize(("policy", "sticky"), POLICIES)
def test_they_agree_after_one_node_died(policy: str, sticky: bool) -> None:
    world = World()
    views = nodes(world, sticky=sticky)
    before = placed(views, policy)
    # What the dead node had open is not counted any more, and a new node knows what the table says.
    survivors = [replace(views[at], loads=LOADS[0]) for at in (1, 2)]
    newcomer = world.node()
    assert isinstance(views[1].bindings, NodeBindings)
    newcomer.rows.update(views[1].bindings.rows)
    survivors.append(View("n9", WORKERS, newcomer, loads=LOADS[1], sticky=sticky))
    after = placed(survivors, policy)
    assert agreed(after) == 30
    assert [row[0] for row in after] == [row[0] for row in before]


def test_a_sticky_key_stays_whatever_the_load_is() -> None:
    busy = {worker: 500 * (at % 2) for at, worker in enumerate(WORKERS)}
    world = World()
    calm, hurried = nodes(world, sticky=True)[:2]
    hurried.loads = busy
    assert agreed(placed([calm, hurried], "power_of_two")) == 30
    assert world.written == 0


def test_only_what_went_elsewhere_is_written_down_and_does_not_come_back() -> None:
    world = World()
    views = nodes(world, sticky=True)
    before = placed(views, "power_of_two")
    assert world.written == 0
    dead = before[0][0]
    moved = [key for key, row in zip(KEYS, before, strict=True) if row[0] == dead]
    for view in views:
        view.away = [dead]
    elsewhere = placed(views, "power_of_two")
    assert world.written == len(moved)
    for view in views:
        view.away = []
    # Its home is back, and nobody jumps.
    assert placed(views, "power_of_two") == elsewhere
    first = views[0].bindings
    assert isinstance(first, NodeBindings)
    assert sorted(first.bound) == sorted(sticky_id(key, model="m") for key in moved)
    assert dead in first.why[sticky_id(moved[0], model="m")]
    assert sticky_id(moved[0], model="m") in first.touched


def test_a_key_whose_new_worker_fails_too_goes_home_if_home_is_back() -> None:
    world = World()
    view = nodes(world, sticky=True)[0]
    home = view.place("random", asked("k"))
    view.away = [home]
    second = view.place("random", asked("k"))
    view.away = [second]
    assert view.place("random", asked("k")) == home
    assert world.tables[0].bound == {}
    view.away = [home, second]
    third = view.place("random", asked("k"))
    assert third not in (home, second)
    assert list(world.tables[0].bound.values()) == [third]


def test_one_node_that_cannot_reach_a_worker_takes_its_keys_along_on_all_nodes() -> None:
    world = World()
    views = nodes(world, sticky=True)
    home = views[0].place("random", asked("k"))
    views[1].away = [home]
    new = views[1].place("random", asked("k"))
    assert new != home
    assert [view.place("random", asked("k")) for view in views] == [new] * 3


def test_requests_without_a_key_go_by_the_policy_behind() -> None:
    view = nodes(World(), sticky=True)[0]
    seen = {view.place("random", Asked("m", ids=(1, 2))) for _ in range(60)}
    assert len(seen) > 4
    seen = {view.place("manual", Asked("m", ids=(1, 2))) for _ in range(60)}
    assert len(seen) > 1


@pytest.mark.parametrize("assignment", ["ring", "random", "min_load"])
def test_a_manual_key_stays_where_it_was_assigned(assignment: str) -> None:
    world = World()
    options = PolicyOptions(assignment=assignment)  # type: ignore[arg-type]  # one of the three
    views = [replace(view, options=options) for view in nodes(world, sticky=False)]
    before = placed(views, "manual")
    assert agreed(before) == 30
    assert len(world.tables[0].bound) == 30
    if assignment == "min_load":
        least = min(LOADS[0].values())
        assert all(LOADS[0][row[0]] == least for row in before)
    # One more worker does not move what was assigned.
    for view in views:
        view.workers = [*WORKERS, "w-new"]
        view.loads = dict.fromkeys(WORKERS, 9)
    assert placed(views, "manual") == before


def test_two_nodes_that_assign_one_key_at_random_agree_once_they_heard() -> None:
    world = World(held=True)
    options = PolicyOptions(assignment="random")
    views = [replace(view, options=options) for view in nodes(world, sticky=False)]
    assert agreed(placed(views, "manual")) < 30
    world.deliver()
    assert agreed(placed(views, "manual")) == 30
