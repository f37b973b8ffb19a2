"""What nodes that are new, or back in another life, are told of engines' caches by the others."""

from smg_node.cluster.membership.cluster_interface import ReadinessReasons
from smg_node.cluster.prefix_hints.prefix_sharing import NOT_HERE, SETTLED_S, YOUNG_S
from support.fleet.prefix_hint_world import SharingWorld

BLOCKS = tuple(range(100, 110))


def test_who_comes_new_to_few_nodes_is_told_what_they_know_for_some_minutes() -> None:
    world = SharingWorld("a", "b")
    for name in "ab":
        world[name].follow("w1")
    world.run(SETTLED_S + 2)
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(10)
    c = world.join("c")
    c.follow("w1")
    assert c.sharing.doubts().reasons == (NOT_HERE,)
    world.run(3)
    assert c.sharing.doubts() == ReadinessReasons()
    assert c.knows("w1", *BLOCKS) == 10.0
    assert world["a"].door.quiet is False
    c.stored("w1", *BLOCKS[:4])
    world.run(YOUNG_S + 5)
    assert world["a"].door.quiet
    assert c.knows("w1", *BLOCKS) == 4.0, "what it knows at first hand it keeps"


def test_who_comes_is_ready_with_what_the_others_know_though_none_of_them_has_looked_around() -> (
    None
):
    world = SharingWorld("a", "b")
    for name in "ab":
        world[name].follow("w1")
    world.run(SETTLED_S + 2)
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(10)
    c = world.join("c")
    for _ in range(50):
        if c.sharing.doubts() == ReadinessReasons():
            break
        world.talk()
    assert c.sharing.doubts() == ReadinessReasons()
    assert c.knows("w1", *BLOCKS) == 10.0


def test_who_hears_of_a_worker_after_what_is_cached_there_is_not_ready_before_it_heard_that_again() -> (
    None
):
    world = SharingWorld("a", "b", "c", "d", "e")
    for name in "ab":
        world[name].follow("w1")
    world.run(2)
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(2)
    new = world.join("f")
    new.registered = 1
    new.fleet.change()
    for _ in range(10):
        world.talk()
    assert new.sharing.doubts().reasons == (NOT_HERE,), "a worker has not come here yet"
    new.fleet.change("w1")
    assert new.sharing.doubts().reasons == (NOT_HERE,)
    for _ in range(10):
        world.talk()
    assert new.sharing.doubts() == ReadinessReasons()
    assert new.knows("w1", *BLOCKS) == 10.0


def test_who_comes_soon_after_another_one_is_told_what_that_one_knows_already() -> None:
    world = SharingWorld("a")
    world["a"].follow("w1")
    world.run(2)
    world["a"].stored("w1", *BLOCKS)
    b = world.join("b")
    b.follow("w1")
    world.run(3)
    assert b.knows("w1", *BLOCKS) == 10.0


def test_who_comes_soon_after_another_one_that_knows_nothing_is_told_nothing_later() -> None:
    world = SharingWorld("a")
    world["a"].follow("w1")
    world.run(2)
    world.join("b").follow("w1")
    for node in world.wire.nodes.values():
        node.stored("w1", *BLOCKS)
    world.run(3)
    assert [node.door.quiet for node in world.wire.nodes.values()] == [True, True]


def test_who_was_away_so_shortly_that_nobody_missed_it_is_told_as_a_newcomer() -> None:
    world = SharingWorld("a", "b")
    for name in "ab":
        world[name].follow("w1")
    world.run(SETTLED_S + 2)
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(10)
    again = world.join("b", boot=2)
    again.follow("w1")
    assert again.knows("w1", *BLOCKS) == 0.0
    world.run(3)
    assert again.knows("w1", *BLOCKS) == 10.0


def test_who_restarts_seconds_after_another_one_is_told_what_that_one_heard_since() -> None:
    world = SharingWorld("a", "b")
    for name in "ab":
        world[name].follow("w1")
        world[name].stored("w1", *BLOCKS)
    world.run(SETTLED_S + 2)
    a = world.join("a", boot=2)
    a.follow("w1")
    assert a.sharing.doubts().reasons == (NOT_HERE,)
    world.run(3)
    assert a.sharing.doubts() == ReadinessReasons()
    assert a.knows("w1", *BLOCKS) == 10.0
    for name in "ab":
        world[name].stored("w1", 200)
    b = world.join("b", boot=2)
    b.follow("w1")
    world.run(3)
    assert b.sharing.doubts() == ReadinessReasons()
    assert b.knows("w1", 200) == 1.0


def test_nodes_that_start_together_and_know_nothing_do_not_wait_for_each_other() -> None:
    world = SharingWorld("a", "b", "c")
    nodes = list(world.wire.nodes.values())
    doubts: list[ReadinessReasons] = []
    for _ in range(20):
        world.talk()
        doubts = [node.sharing.doubts() for node in nodes]
    assert doubts == [ReadinessReasons()] * 3


def test_who_was_ready_stays_so_whatever_workers_come() -> None:
    world = SharingWorld("a")
    world.run(1)
    b = world.join("b")
    assert b.sharing.doubts().reasons == (NOT_HERE,)
    for _ in range(10):
        world.talk()
    assert b.sharing.doubts() == ReadinessReasons(), "there are no workers, and nothing to wait for"
    for node in world.wire.nodes.values():
        node.follow("w1")
    assert b.sharing.doubts() == ReadinessReasons()
    world.run(3)
    assert b.sharing.doubts() == ReadinessReasons()
