from collections.abc import Sequence
from dataclasses import replace

import pytest

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents.document_slot import Slot
from smg_mesh.crdt.documents.epoch_leftovers import place_of
from support.state.document_world import SMALL, DocumentWorld, Node

UNION_MS = SMALL.union_ms
WEEK_MS = SMALL.epoch_age_ms


def slots(node: Node, key: str = "x") -> Sequence[Slot]:
    return node.registers._holding.cells.slots(key)


def roots(node: Node, key: str = "x") -> list[str]:
    return sorted(slot.root for slot in slots(node, key))


def churn(world: DocumentWorld, name: str, count: int = SMALL.epoch_deletions + 2) -> None:
    """Write one key until the document has enough deletions for a new epoch."""
    for number in range(count):
        world[name].write("churn", b"%d" % number)
    world.deliver_all()


def begin_epoch(world: DocumentWorld) -> None:
    """Let whoever is first in line begin it, before anybody else hears of it."""
    for node in world.up:
        node.tend()
    assert {1, 2} >= {node.registers.epoch for node in world.up}
    assert any(node.registers.epoch == 2 for node in world.up)


def test_a_new_epoch_holds_what_the_old_one_held_and_none_of_its_waste() -> None:
    world = DocumentWorld(3)
    world["a"].write("x", b"1")
    world["b"].write("y", b"2")
    churn(world, "c")
    before = world["a"].registers.size_bytes
    world.settle()
    for node in world.up:
        assert node.registers.epoch == 2
        assert node.values() == {"x": b"1", "y": b"2", "churn": b"13"}
        assert node.registers._holding.open().deletions == 0
        assert node.registers.size_bytes < before


def test_only_the_first_in_line_begins_an_epoch() -> None:
    world = DocumentWorld(3)
    churn(world, "a")
    begin_epoch(world)
    first = [node.name for node in world.up if node.registers.epoch == 2]
    subject = "settings/1\x001"
    assert first == [name for name in "abc" if place_of(name, subject, list("abc")) == 0]


def test_both_documents_are_read_until_everything_is_written_again() -> None:
    world = DocumentWorld(3)
    for name in "abc":
        world[name].write(f"of/{name}", name.encode())
    churn(world, "a")
    values = world["a"].values()
    begin_epoch(world)
    for node in world.up:
        assert node.values() == values
    for _ in range(3):
        world.exchange("a", "b")
        world.exchange("b", "c")
        assert [node.values() for node in world.up] == [values] * 3
    assert {node.registers.epoch for node in world.up} == {2}


def test_entries_keep_time_boot_and_what_they_had_seen() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world["a"].write("x", b"2")
    churn(world, "b")
    before = [slot.entry for slot in slots(world["a"])]
    world.settle()
    assert [slot.entry for slot in slots(world["b"])] == before


def test_a_dead_owners_entries_are_adopted_by_one_and_still_called_its_own() -> None:
    world = DocumentWorld(4)
    world["d"].write("x", b"1")
    world.deliver_all()
    world["d"].up = False
    churn(world, "a")
    world.settle(rounds=400, step_ms=1_000)
    (adopter,) = roots(world["a"])
    assert adopter in "abc"
    for node in world.up:
        assert roots(node) == [adopter]
        winner = node.held()["x"]
        assert winner is not None
        assert (winner.owner, winner.value) == ("d", b"1")


def test_an_owner_that_lost_its_disk_meanwhile_has_its_entries_back_within_seconds() -> None:
    world = DocumentWorld(3)
    world["c"].write("x", b"1")
    world.settle()
    world["c"].up = False
    churn(world, "a")
    for node in world.up:
        node.tend(["a", "b", "c"])
    world.exchange("a", "b")
    world.restart("c", keeps_disk=False)
    for _ in range(6):
        for one, other in ("ab", "bc", "ac"):
            world.exchange(one, other)
        world.now_ms += 1_000
        for node in world.up:
            node.tend()
    assert [node.values().get("x") for node in world.up] == [b"1"] * 3


def test_an_adopted_entry_goes_home_when_its_owner_wakes_up_with_it() -> None:
    world = DocumentWorld(3)
    world["c"].write("x", b"1")
    world.settle()
    world["c"].up = False
    churn(world, "a")
    world.settle()
    assert roots(world["a"]) != ["c"]
    world["c"].up = True  # it was paused, and still holds the old epoch
    world.settle()
    for node in world.up:
        assert roots(node) == ["c"]
        assert node.conflicts() == {}


def test_a_returned_owner_writes_over_and_retires_adopted_entries() -> None:
    world = DocumentWorld(3)
    world["c"].write("x", b"1")
    world["c"].write("log", b"2")
    world.settle()
    world["c"].up = False
    churn(world, "a")
    world.settle()
    world.restart("c", keeps_disk=False)
    world.settle()
    world["c"].write("x", b"3")
    world["c"].retire("log")
    world.settle()
    for node in world.up:
        values = node.values()
        assert (values["x"], values.get("log")) == (b"3", None)
        assert roots(node) == ["c"]


def test_two_epochs_begun_on_two_sides_of_a_cut_are_one() -> None:
    world = DocumentWorld(4)
    for name in "abcd":
        world[name].write(f"of/{name}", name.encode())
    world.settle()
    world.sides = dict(zip("abcd", (0, 0, 1, 1), strict=True))
    churn(world, "a")
    churn(world, "c")
    world["a"].write("x", b"left")
    world["c"].write("x", b"right")
    for _ in range(30):
        world.deliver_all()
        for one, other in ("ab", "cd"):
            world.exchange(one, other)
        world.now_ms += 10_000
        for node in world.up:
            node.tend()
    assert {node.registers.epoch for node in world.up} == {2}
    world.settle()
    for node in world.up:
        assert {f"of/{name}": name.encode() for name in "abcd"}.items() <= node.values().items()
        assert roots(node, "of/a") == ["a"]
        assert roots(node, "of/d") == ["d"]
        assert [held.value for held in node.conflicts()["x"]] == [b"left"]


def test_a_straggler_in_the_old_epoch_is_heard_while_that_is_read() -> None:
    world = DocumentWorld(2)
    churn(world, "a")
    for _ in range(2):
        world["a"].tend(["a"])
    assert (world["a"].registers.epoch, world["b"].registers.epoch) == (2, 1)
    world.letters.clear()
    said = world["b"].write("x", b"late")
    heard = world["a"].registers.hear(said.update, said.client, said.upto, said.epoch)
    assert heard.changed == ("x",)
    assert not heard.gap
    world["b"].up = False  # for ever, before it knew of the new epoch
    world.settle()
    assert world["a"].values()["x"] == b"late"
    assert roots(world["a"]) == ["a"]


def test_a_straggler_after_that_is_fetched_and_writes_again_itself() -> None:
    world = DocumentWorld(2)
    churn(world, "a")
    world["a"].tend(["a"])
    world.now_ms += UNION_MS
    world["a"].tend(["a"])
    assert world["a"].registers._holding.left is None
    said = world["b"].write("x", b"late")
    heard = world["a"].registers.hear(said.update, said.client, said.upto, said.epoch)
    assert (heard.changed, heard.gap) == ((), True)
    assert not world["a"].registers.has(said.epoch, said.client, said.upto)
    world.exchange("a", "b")
    assert world["a"].values()["x"] == b"late"


def test_what_only_one_node_holds_survives_its_owner_and_the_epoch() -> None:
    world = DocumentWorld(4)
    said = world["d"].write("x", b"1")
    world["c"].registers.hear(said.update, said.client, said.upto, said.epoch)
    world.letters.clear()
    world["d"].up = False
    churn(world, "a")
    world.sides = {"c": 1}
    for _ in range(8):
        for node in world.up:
            node.tend()
        world.exchange("a", "b")
        world.now_ms += UNION_MS // 4
    world.settle()
    assert [node.values()["x"] for node in world.up] == [b"1"] * 3


def test_what_is_left_survives_a_restart_in_the_middle_of_an_epoch_change() -> None:
    world = DocumentWorld(3)
    world["c"].write("x", b"1")
    churn(world, "a")
    world["c"].up = False
    world["b"].up = False
    world["a"].tend(["a", "b", "c"])
    world["a"].registers.summary(2)
    assert world["a"].registers._holding.left is not None
    world.save("a")
    world.restart("a", keeps_disk=True)
    assert world["a"].registers.epoch == 2
    assert world["a"].values()["x"] == b"1"
    world.settle()
    assert roots(world["a"]) == ["a"]


def test_a_dump_of_an_earlier_epoch_is_taken_as_what_is_left() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world.save("a")
    disk = world["a"].disk
    world.letters.clear()  # nobody else ever heard of it
    churn(world, "b")
    world["b"].tend(["b"])
    fresh = world.restart("a", keeps_disk=False)
    world.exchange("a", "b")
    assert (fresh.registers.epoch, fresh.values().get("x")) == (2, None)
    assert fresh.registers.load(disk) == ("x",)
    assert fresh.values()["x"] == b"1"
    world.settle()
    assert world["b"].values()["x"] == b"1"
    assert roots(world["b"]) == ["a"]


def test_removals_are_carried_and_removed_keys_stay_removed() -> None:
    world = DocumentWorld(3)
    world["c"].write("x", b"1")
    world.deliver_all()
    world["c"].up = False
    world["a"].write("x", None)
    churn(world, "b")
    world.settle()
    assert [slot.said.value for slot in slots(world["b"])] == [None]
    world["c"].up = True
    world.settle()
    assert [node.values().get("x") for node in world.up] == [None] * 3


def test_many_entries_are_carried_a_few_at_a_time() -> None:
    world = DocumentWorld(2, options=replace(StateOptions(), epoch_deletions=5))
    for number in range(700):
        world["a"].write(f"k{number:03}", b"1")
    world.settle()
    world.letters.clear()
    for number in range(6):
        world["a"].write("k000", b"%d" % number)
    world["a"].tend(["a"])
    assert world["a"].registers.epoch == 2
    carried = len(world["a"].registers._holding.open().mirror.slots())
    assert carried == 256
    tended = world["a"].tend(["a"])
    assert tended.due_ms == world.now_ms
    assert sum(len(said.update) > 0 for said in tended.writes) == 8
    assert len(world["a"].values()) == 700
    world.settle()
    assert len(world["b"].values()) == 700
    assert world["b"].registers.digest == world["a"].registers.digest


def test_an_old_document_is_begun_anew_if_anything_would_be_gained() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world.settle()
    world.now_ms += 2 * WEEK_MS
    world.settle()
    assert world["a"].registers.epoch == 1
    world["a"].write("x", b"2")
    world.settle()
    world.now_ms += 2 * WEEK_MS
    world.settle()
    assert world["a"].registers.epoch == 2


def test_restarts_alone_lead_to_a_new_epoch() -> None:
    world = DocumentWorld(2)
    for number in range(SMALL.epoch_clients + 1):
        world.restart("a", keeps_disk=False)
        world.exchange("a", "b")
        world["a"].write(f"k{number}", b"1")
        world.deliver_all()
    world.settle()
    assert world["b"].registers.epoch == 2
    assert len(world["b"].values()) == SMALL.epoch_clients + 1


def test_a_large_document_without_waste_is_left_alone() -> None:
    world = DocumentWorld(1, options=StateOptions())
    for number in range(1_400):
        world["a"].write(f"k{number}", bytes(140))
    assert world["a"].registers.size_bytes > StateOptions().epoch_bytes
    world["a"].tend()
    assert world["a"].registers.epoch == 1


@pytest.mark.parametrize("name", list("abc"))
def test_everybody_agrees_on_the_line(name: str) -> None:
    places = sorted(place_of(other, name, list("abc")) for other in "abc")
    assert places == [0, 1, 2]
