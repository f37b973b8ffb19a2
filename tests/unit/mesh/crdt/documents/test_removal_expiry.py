"""Removals are forgotten when they are old, and what they beat stays away all the same."""

from dataclasses import replace

from support.state.document_world import SMALL, DocumentWorld, Node

KEEP_MS = 3_600_000
OPTIONS = replace(SMALL, removed_keep_ms=KEEP_MS, save_apart_ms=0)


def holds(node: Node, key: str) -> bool:
    """Whether the node holds anything of a key, a removal too."""
    keys = node.registers.keys()
    return key in keys


def away_while_a_worker_is_removed(left_ms: int) -> DocumentWorld:
    """Let c come back from its disk with a removed worker, `left_ms` before the removal is forgotten."""
    world = DocumentWorld(3, options=OPTIONS)
    world["b"].write("w/api", b"1")
    world.settle()
    world.save("c")
    world["c"].up = False
    world["a"].write("w", None)
    removed_ms = world.now_ms
    world.now_ms += 1
    world["b"].write("w/dns", b"3")
    world.exchange("a", "b")
    world["b"].retire("w/api")  # what it said is beaten: it goes without a trace
    for number in range(SMALL.epoch_deletions + 2):
        world["a"].write("churn", b"%d" % number)
    world.settle()
    assert world["a"].registers.epoch == 2
    world.now_ms = removed_ms + KEEP_MS - left_ms
    world.restart("c", keeps_disk=True)
    assert world["c"].registers.epoch == 1
    world.exchange("a", "c")
    world.letters.clear()
    return world


def look(world: DocumentWorld) -> None:
    """Only what is later than the removal is left in the end, and the removal is forgotten."""
    world.settle()
    for node in world.up:
        assert node.values() == {"w/dns": b"3", "churn": b"13"}
        assert not holds(node, "w")


def test_what_waits_to_be_carried_over_goes_with_the_removal_that_beat_it() -> None:
    world = away_while_a_worker_is_removed(left_ms=10_000)
    world.now_ms += 11_000
    world["a"].tend()
    world.exchange("a", "c")
    assert not holds(world["c"], "w")
    look(world)


def test_what_was_carried_over_a_moment_before_the_removal_went_is_taken_back() -> None:
    world = away_while_a_worker_is_removed(left_ms=10_000)
    world["c"].tend()
    world.now_ms += 9_000
    assert world["c"].tend().writes
    world.letters.clear()
    world.now_ms += 2_000
    world["a"].tend()
    assert not holds(world["a"], "w")
    world.exchange("a", "c")
    assert holds(world["c"], "w/api")
    assert world["c"].tend().deleted
    look(world)


def test_a_removal_that_is_replaced_by_a_later_one_takes_nothing_with_it() -> None:
    world = away_while_a_worker_is_removed(left_ms=10_000)
    world["b"].write("w", None)
    world["a"].tend()
    world.exchange("a", "b")
    world["a"].tend()
    world.exchange("a", "c")
    assert holds(world["c"], "w")
    assert holds(world["c"], "w/api")
