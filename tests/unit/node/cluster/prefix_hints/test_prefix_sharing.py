"""What nodes know of engines' caches from each other."""

import pytest
from prometheus_client import CollectorRegistry

from smg_node.cluster.membership.cluster_interface import ReadinessReasons
from smg_node.cluster.prefix_hints.prefix_sharing import (
    ARRIVE_MAX_S,
    NOT_HERE,
    SETTLED_S,
    YOUNG_S,
)
from smg_node.routing.kv_index.prefix_index import ASSUMED_S
from smg_node.telemetry.metrics.meters import Meters
from support.fleet.prefix_hint_world import SharingNode, SharingWorld

BLOCKS = tuple(range(100, 110))


def five(*, following: tuple[str, ...] = ("a", "b")) -> SharingWorld:
    """Return five nodes, of which two follow w1."""
    world = SharingWorld("a", "b", "c", "d", "e")
    for name in following:
        world[name].follow("w1")
    world.run(2)
    return world


# ── Many nodes ───────────────────────────────────────────────────────────────


def test_who_follows_an_engine_tells_those_who_do_not() -> None:
    world = five()
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(1)
    assert [world[name].knows("w1", *BLOCKS) for name in "cde"] == [10.0] * 3
    for name in "ab":
        world[name].removed("w1", *BLOCKS[5:])
    world.run(1)
    assert [world[name].knows("w1", *BLOCKS) for name in "cde"] == [5.0] * 3
    for name in "ab":
        world[name].index.clear("w1")
    world.run(1)
    assert [world[name].knows("w1", *BLOCKS) for name in "cde"] == [0.0] * 3


def test_who_follows_for_long_believes_nobody_else() -> None:
    world = five()
    world["a"].stored("w1", *BLOCKS)
    world.run(1)
    assert world["b"].knows("w1", *BLOCKS) == 10.0, "it has only just begun to follow"
    world.wire.now_ms += round(1000 * YOUNG_S)
    world.run(2)
    world["a"].stored("w1", *BLOCKS, 99)
    world.run(10)
    assert world["b"].knows("w1", *BLOCKS) == 0.0


def test_one_source_is_believed_and_when_it_goes_another_one() -> None:
    world = five()
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(10)
    [source] = [name for name in "ab" if world["c"].sharing._sources == {"w1": name}]
    [other] = [name for name in "ab" if name != source]
    world[other].stored("w1", 200)
    world.run(10)
    assert world["c"].knows("w1", 200) == 0.0
    assert world["c"].talk.reader.held(other, "w1") == (0, 0), "nobody else is followed meanwhile"
    world.leave(source)
    assert world["c"].knows("w1", *BLOCKS) == 5.0, "it is a guess now"
    world.run(4)
    assert world["c"].sharing._sources == {"w1": other}
    assert world["c"].knows("w1", *BLOCKS) == 10.0
    assert world["c"].knows("w1", 200) == 1.0


def test_what_the_only_source_said_is_a_guess_for_a_while_when_it_goes() -> None:
    world = five()
    world["a"].stored("w1", *BLOCKS)
    world.run(1)
    assert [world[name].knows("w1", *BLOCKS) for name in "bcde"] == [10.0] * 4
    world.leave("a")
    world.run(1)
    assert [world[name].knows("w1", *BLOCKS) for name in "bcde"] == [5.0] * 4
    world["b"].stored("w1", *BLOCKS[:4])
    world.run(4)
    assert [world[name].knows("w1", *BLOCKS) for name in "bcde"] == [7.0] * 4
    world["b"].index.clear("w1")
    world.run(1)
    assert world["b"].knows("w1", *BLOCKS) == 0.0
    assert world["c"].knows("w1", *BLOCKS, now_s=ASSUMED_S + 60.0) == 0.0


def test_what_a_source_said_is_a_guess_when_others_follow_in_its_place() -> None:
    world = five()
    world["a"].stored("w1", *BLOCKS)
    world.run(1)
    world["a"].fleet.followed.clear()
    world["d"].follow("w1")
    world["a"].index.doubt("w1", world.now_s())
    world.run(1)
    assert [world[name].knows("w1", *BLOCKS) for name in "abcde"] == [5.0] * 5
    world["d"].index.clear("w1")
    assert world["d"].knows("w1", *BLOCKS) == 0.0


def test_what_an_engine_lost_is_not_guessed() -> None:
    world = five()
    world["a"].stored("w1", *BLOCKS)
    world.run(1)
    world["a"].index.clear("w1")
    world.run(1)
    assert [world[name].knows("w1", *BLOCKS) for name in "abcde"] == [0.0] * 5


def test_a_source_that_has_nothing_any_more_is_replaced_by_one_that_has() -> None:
    world = five()
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(10)
    [source] = world["c"].sharing._sources.values()
    world[source].index.unlearn("w1")
    world.run(4)
    assert world["c"].knows("w1", *BLOCKS) == 10.0


def test_in_the_end_the_index_of_each_says_what_the_engine_said() -> None:
    world = five()
    held: set[int] = set()
    for turn in range(60):
        more = range(1_000 * turn, 1_000 * turn + 50)
        held.update(more)
        gone = sorted(held)[: 30 if turn % 3 else 0]
        held.difference_update(gone)
        for name in "ab":
            world[name].stored("w1", *more)
            world[name].removed("w1", *gone)
        world.wire.loss = 0.5 if 20 <= turn < 30 else 0.0
        world.run(0.5)
    world.wire.loss = 0.0
    world.run(20)
    for name in "cde":
        wrong = [
            one for one in range(60_000) if (world[name].knows("w1", one) > 0) != (one in held)
        ]
        assert wrong == []


# ── Workers that come, go, and change ────────────────────────────────────────


def test_a_worker_that_is_removed_is_forgotten_and_when_it_returns_it_is_told_anew() -> None:
    world = five()
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(1)
    c = world["c"]
    c.fleet.change()
    c.index.forget("w1")
    world.run(2)
    assert c.knows("w1", *BLOCKS) == 0.0
    assert c.sharing._sources == {}
    c.fleet.change("w1")
    world.run(4)
    assert c.knows("w1", *BLOCKS) == 10.0


def test_what_the_index_was_told_to_forget_is_told_anew_while_the_worker_is_there() -> None:
    world = five()
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.run(1)
    world["c"].index.forget("w1")
    world.run(4)
    assert world["c"].knows("w1", *BLOCKS) == 10.0


def test_hints_about_workers_that_this_node_does_not_have_are_not_taken() -> None:
    world = SharingWorld("a", "b", "c", "d")
    world["d"].fleet.change("w2")
    world["a"].follow("w1")
    world.run(1)
    world["a"].stored("w1", *BLOCKS)
    world.run(10)
    assert world["c"].knows("w1", *BLOCKS) == 10.0
    assert world["d"].knows("w1", *BLOCKS) == 0.0
    assert world["d"].index.figures().entries == 0


def test_a_node_that_is_no_longer_in_charge_hears_it_from_those_who_are() -> None:
    world = five()
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
    world.wire.now_ms += round(1000 * YOUNG_S)
    world.run(2)
    a = world["a"]
    assert a.sharing._sources == {}
    a.fleet.followed.clear()
    a.index.unlearn("w1")
    world.run(4)
    assert a.sharing._sources == {"w1": "b"}
    assert a.knows("w1", *BLOCKS) == 10.0


# ── Few nodes ────────────────────────────────────────────────────────────────


def three() -> SharingWorld:
    world = SharingWorld("a", "b", "c")
    for node in world.wire.nodes.values():
        node.follow("w1")
    world.run(SETTLED_S + 2)
    return world


def test_where_all_follow_all_nothing_is_told() -> None:
    world = three()
    for node in world.wire.nodes.values():
        node.stored("w1", *BLOCKS)
    calls = len(world.wire.calls)
    world.run(20)
    assert all(node.door.quiet for node in world.wire.nodes.values())
    assert sum(node.talk.stream.told for node in world.wire.nodes.values()) == 0
    assert len(world.wire.calls) - calls <= 3 * 2 * 5


def test_also_where_many_nodes_are_told_to_follow_all() -> None:
    world = five(following=("a", "b", "c", "d", "e"))
    for node in world.wire.nodes.values():
        node.all_follow = True
    world.run(2)
    assert all(node.door.quiet for node in world.wire.nodes.values())


# ── Guesses ──────────────────────────────────────────────────────────────────


def test_guesses_about_engines_that_say_nothing_are_told_and_not_again_with_each_request() -> None:
    world = SharingWorld("a", "b", "c")
    world.run(2)
    a, b = world["a"], world["b"]
    a.sharing.assumed("w1", BLOCKS, world.now_s())
    world.run(1)
    assert 0 < b.knows("w1", *BLOCKS, now_s=world.now_s()) < 10
    told = a.talk.stream.told
    a.sharing.assumed("w1", (*BLOCKS, 999), world.now_s())
    world.run(1)
    assert a.talk.stream.told - told == 2, "one block to two peers"
    a.sharing.assumed("w1", BLOCKS, world.now_s() + 61)
    a.sharing.assumed("w1", BLOCKS, world.now_s() + 122)
    a.sharing.assumed("w1", BLOCKS, world.now_s() + 183)
    world.run(1)
    assert a.sharing.counts["mentioned"] == 21


def test_nobody_guesses_where_somebody_follows_or_nobody_else_is() -> None:
    world = five()
    world["a"].stored("w1", *BLOCKS)
    world.run(1)
    for name in "ac":
        world[name].sharing.assumed("w1", [7], world.now_s())
    alone = SharingWorld("x")
    alone["x"].sharing.assumed("w1", [7], 1.0)
    counted = [world["a"], world["c"], alone["x"]]
    assert [node.sharing.counts["mentioned"] for node in counted] == [0, 0, 0]


def test_who_follows_an_engine_takes_no_guesses() -> None:
    world = SharingWorld("a", "b")
    world["b"].follow("w1")
    world.run(2)
    world["a"].sharing.assumed("w1", BLOCKS, world.now_s())
    world.run(1)
    assert world["b"].knows("w1", *BLOCKS, now_s=world.now_s()) == 0.0


# ── Being ready ──────────────────────────────────────────────────────────────


def test_a_node_without_others_is_ready_at_once() -> None:
    world = SharingWorld("a")
    assert world["a"].sharing.doubts() == ReadinessReasons()


def test_a_new_node_waits_for_the_prefixes_of_the_others_and_not_for_long() -> None:
    world = five()
    world["a"].stored("w1", *BLOCKS)
    world.run(1)
    new = world.join("f")
    world.wire.cut = {"f"}
    assert new.sharing.doubts().reasons == (NOT_HERE,)
    world.wire.cut = set()
    world.run(1)
    assert new.sharing.doubts() == ReadinessReasons()
    assert new.knows("w1", *BLOCKS) == 10.0
    silent = world.join("g")
    for _ in range(round(ARRIVE_MAX_S)):
        assert silent.sharing.doubts().reasons == (NOT_HERE,)
        world.wire.now_ms += 1_000
    assert silent.sharing.doubts() == ReadinessReasons()


def test_a_node_that_was_there_first_waits_for_nobody_even_if_it_is_asked_late() -> None:
    world = SharingWorld("a")
    doubts = world["a"].sharing.after(ReadinessReasons)
    world.run(2)
    world.join("b")
    assert world["a"].door.missing() == ["b"]
    assert doubts() == ReadinessReasons()


def test_a_guess_about_a_worker_that_has_just_come_is_taken_in() -> None:
    world = SharingWorld("a", "b")
    world.run(2)
    for node in (world["a"], world["b"]):
        node.fleet.change("w1", "w2")
    world["b"].sharing.mention("a", "w2", BLOCKS)
    world["b"].sharing.mention("a", "unknown", BLOCKS)
    world["b"].sharing.catch_up()
    assert world["b"].knows("w2", *BLOCKS, now_s=world.now_s()) > 0
    assert world["b"].knows("unknown", *BLOCKS, now_s=world.now_s()) == 0


def test_other_doubts_come_first_and_are_not_taken_for_an_arrival() -> None:
    world = SharingWorld("a", "b")
    node = world["b"]
    said = ReadinessReasons(reasons=("mesh: joining",), degraded=("x",))
    doubts = node.sharing.after(lambda: said)
    assert doubts() == said
    said = ReadinessReasons(degraded=("y",))
    assert doubts() == ReadinessReasons(reasons=(NOT_HERE,), degraded=("y",))
    world.run(2)
    assert doubts() == ReadinessReasons(degraded=("y",))


# ── What a scrape reads ──────────────────────────────────────────────────────


def samples(node: SharingNode) -> dict[str, float]:
    registry = CollectorRegistry()
    node.sharing.watched(Meters(registry, version="1", known_model=bool))
    return {
        " ".join((one.name.removeprefix("smg_node_prefix_"), *one.labels.values())): one.value
        for family in registry.collect()
        for one in family.samples
        if one.name.startswith("smg_node_prefix_")
    }


def test_everything_is_counted() -> None:
    world = five()
    for name in "ab":
        world[name].stored("w1", *BLOCKS)
        world[name].removed("w1", BLOCKS[0])
    world.run(1)
    [source] = world["c"].sharing._sources.values()
    teller, hearer = samples(world[source]), samples(world["c"])
    assert teller["hints_total told"] >= 22
    assert (hearer["hints_total tell"], hearer["hints_total untell"]) == (10, 1)
    assert hearer["told_workers"] == 1
    assert 0 <= hearer[f"stale_seconds {source}"] < 2


@pytest.mark.parametrize("owner", ["b", "nobody"])
def test_who_is_not_believed_changes_nothing(owner: str) -> None:
    world = SharingWorld("a", "b", "c", "d")
    world.run(1)
    sharing = world["d"].sharing
    sharing.add("a", "w1", [1])
    sharing.add(owner, "w1", [2])
    sharing.replace(owner, "w1", [3])
    sharing.remove(owner, "w1", [1])
    sharing.drop(owner, "w1")
    assert [world["d"].knows("w1", one) for one in (1, 2, 3)] == [1.0, 0.0, 0.0]
