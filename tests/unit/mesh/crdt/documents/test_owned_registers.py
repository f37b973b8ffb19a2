from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents.document_slot import Slot
from smg_mesh.crdt.documents.owned_registers import OwnedRegisters
from smg_mesh.crdt.entry import Entry
from smg_mesh.crdt.namespace import StateError
from support.state.document_world import SMALL, DocumentWorld

DAY_MS = 86_400_000


def registers(name: str = "a", options: StateOptions = SMALL) -> OwnedRegisters:
    return OwnedRegisters("settings/1", name, 1, options=options, rng=Random(name))


# ── What counts ──────────────────────────────────────────────────────────────


def test_an_untouched_document_is_nothing() -> None:
    empty = registers()
    assert (empty.epoch, empty.digest, empty.size_bytes, empty.empty) == (0, bytes(16), 0, True)
    assert empty.winner("x", 1) is None
    assert not empty.conflicts("x", 1)
    assert empty.keys() == []
    assert empty.tend(wall_ms=1, now_ms=1, living=["a"]).due_ms is None
    assert empty._holding.document is None


def test_a_write_counts_at_once_and_where_it_is_heard() -> None:
    world = DocumentWorld(3)
    world["a"].write("x", b"1")
    assert world["a"].values() == {"x": b"1"}
    assert world["b"].values() == {}
    world.deliver_all()
    assert [node.values() for node in world.up] == [{"x": b"1"}] * 3
    assert len({node.registers.digest for node in world.up}) == 1


def test_the_later_of_two_writes_counts_and_the_larger_name_at_one_time() -> None:
    one, other = registers("a"), registers("b")
    first = one.write("x", b"1", hlc=5 << 16, seen=0, wall_ms=5)
    second = other.write("x", b"2", hlc=5 << 16, seen=0, wall_ms=5)
    for here, said in ((one, second), (other, first)):
        here.hear(said.update, said.client, said.upto, said.epoch)
        winner = here.winner("x", 5)
        assert winner is not None
        assert (winner.value, winner.owner) == (b"2", "b")
        assert [held.value for held in here.conflicts("x", 5)] == [b"1"]


def test_two_nodes_that_say_the_same_as_of_one_time_do_not_disagree() -> None:
    one, other = registers("a"), registers("b")
    one.write("x", None, hlc=5 << 16, seen=0, wall_ms=5)
    said = other.write("x", None, hlc=5 << 16, seen=0, wall_ms=5)
    one.hear(said.update, said.client, said.upto, said.epoch)
    winner = one.winner("x", 5)
    assert winner is not None
    assert winner.owner == "b"
    assert one.conflicts("x", 5) == []


def test_a_conflict_ends_when_somebody_writes_having_seen_both() -> None:
    world = DocumentWorld(3)
    world["a"].write("x", b"1")
    world["b"].write("x", b"2")
    world.deliver_all()
    assert [held.value for held in world["c"].conflicts()["x"]] == [b"1"]
    world["c"].write("x", b"3")
    world.deliver_all()
    for node in world.up:
        assert node.values() == {"x": b"3"}
        assert node.conflicts() == {}
        assert len(node.registers._holding.cells.slots("x")) == 3
    deleted = [node.tend().deleted for node in world.up]
    assert deleted == [True, True, False]
    world.settle()
    assert len(world["a"].registers._holding.cells.slots("x")) == 1


def test_concurrent_entries_stay_until_they_are_settled() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world["b"].write("x", b"2")
    world.settle()
    assert [len(node.conflicts()["x"]) for node in world.up] == [1, 1]


def test_a_removal_beats_what_was_written_before_it_though_it_comes_later() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world.now_ms += 5
    world["b"].write("x", None)
    world.settle()
    assert [node.values() for node in world.up] == [{}, {}]
    winner = world["a"].registers.winner("x", world["a"].wall_ms)
    assert winner is not None
    assert winner.value is None


def test_of_two_entries_of_one_key_in_one_root_the_later_life_counts_and_cleans_up() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"old")
    world.deliver_all()
    world.restart("a", keeps_disk=False)
    world["a"].write("x", b"new")  # before it has found its old root
    world.deliver_all()
    assert world["b"].values() == {"x": b"new"}
    assert world["b"].conflicts() == {}
    assert len(world["b"].registers._holding.cells.slots("x")) == 2
    world.exchange("a", "b")
    assert world["a"].tend().deleted
    world.settle()
    for node in world.up:
        assert [slot.value[-3:] for slot in node.registers._holding.cells.slots("x")] == [b"new"]


def test_a_restarted_owner_goes_on_with_its_old_root() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world.save("a")
    world.restart("a", keeps_disk=True)
    assert world["a"].values() == {"x": b"1"}
    world["a"].write("x", b"2")
    assert [slot.root for slot in world["a"].registers._holding.cells.slots("x")] == ["a"]
    world.settle()
    assert world["b"].values() == {"x": b"2"}


# ── The future ───────────────────────────────────────────────────────────────


def test_an_entry_from_the_future_is_shown_and_waits_for_its_time() -> None:
    world = DocumentWorld(2)
    world["b"].write("x", b"now")
    world["a"].skew_ms = 120_000
    world["a"].write("x", b"later")
    world.deliver_all()
    b = world["b"]
    assert b.values() == {"x": b"now"}
    assert [(held.value, held.future) for held in b.conflicts()["x"]] == [(b"later", True)]
    due_ms = b.tend().due_ms
    assert due_ms == world.now_ms + 60_000
    world.now_ms = due_ms
    assert b.values() == {"x": b"later"}
    assert b.tend().changed == ("x",)


def test_an_owner_with_a_fast_clock_does_not_make_its_keys_vanish() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world.deliver_all()
    world["b"].tend()
    world["a"].skew_ms = 120_000
    for value in (b"2", b"3"):
        world["a"].write("x", value)
        world.deliver_all()
        assert world["b"].values() == {"x": b"1"}
    world.now_ms += 60_001
    assert world["b"].values() == {"x": b"3"}
    world["b"].tend()
    assert len(world["b"].registers._holding.cells.slots("x")) == 1


def test_an_entry_from_the_future_deletes_nothing_before_its_time() -> None:
    world = DocumentWorld(2)
    world["b"].write("x", b"now")
    world.deliver_all()
    world["a"].skew_ms = 120_000
    world["a"].write("x", b"later")
    world.deliver_all()
    assert not world["b"].tend().deleted
    world.now_ms += 61_000
    assert world["b"].tend().deleted


def test_a_wall_clock_set_back_hides_nothing() -> None:
    world = DocumentWorld(1)
    world["a"].write("x", b"1")
    world["a"].skew_ms = -3_600_000
    assert world["a"].values() == {"x": b"1"}


# ── Gaps ─────────────────────────────────────────────────────────────────────


def test_a_late_predecessor_closes_the_gap() -> None:
    world = DocumentWorld(2)
    said = [world["a"].write(key, b"1") for key in ("x", "y", "z")]
    heard = [
        world["b"].registers.hear(one.update, one.client, one.upto, one.epoch)
        for one in (said[2], said[1], said[0])
    ]
    assert [one.gap for one in heard] == [True, True, False]
    assert heard[2].changed == ("x", "y", "z")
    assert world["b"].registers.has(1, said[2].client, 3)
    assert world["b"].registers.pending == 0


def test_an_exchange_closes_a_gap_and_takes_what_has_waited() -> None:
    world = DocumentWorld(3)
    first = world["a"].write("x", b"1")
    world["c"].registers.hear(first.update, first.client, first.upto, first.epoch)
    second = world["a"].write("x", b"2")
    b = world["b"].registers
    assert b.hear(second.update, second.client, second.upto, second.epoch).gap
    world["a"].up = False
    world.exchange("b", "c")
    assert world["b"].values() == {"x": b"2"}
    assert b.pending == 0


def test_an_update_waits_for_the_entry_of_an_earlier_life_that_it_stands_beside() -> None:
    world = DocumentWorld(2)
    b = world["b"].registers
    world["a"].write("x", b"1")
    world.deliver_all()
    world["a"].write("y", b"1")  # lost, and the last entry of this life
    world["a"].write("z", b"1")
    world.letters.clear()
    world.save("a")
    world.restart("a", keeps_disk=True)
    said = world["a"].write("x", b"2")
    assert b.hear(said.update, said.client, said.upto, said.epoch).gap
    assert world["b"].values() == {"x": b"1"}  # and not nothing
    later = world["a"].write("x", b"3")
    assert b.hear(later.update, later.client, later.upto, later.epoch).gap
    world.exchange("a", "b")
    assert world["b"].values() == {"x": b"3", "y": b"1", "z": b"1"}
    assert b.pending == 0


def test_updates_that_wait_are_bounded() -> None:
    world = DocumentWorld(2)
    for number in range(300):
        world["a"].write("x", b"%d" % number * 300)
    for letter in world.letters[1:]:
        world.deliver(letter)
    early = world["b"].registers._holding.early
    assert 0 < len(early) <= 64
    assert early._bytes <= 65_536


# ── Limits ───────────────────────────────────────────────────────────────────


def test_keys_and_values_have_limits() -> None:
    node = registers()
    for key, value in (("", b""), ("k" * 257, b""), ("k", bytes(16_385))):
        with pytest.raises(StateError) as caught:
            node.write(key, value, hlc=1, seen=0, wall_ms=1)
        assert caught.value.reason == "too_large"
    with pytest.raises(ValueError, match="NUL"):
        node.write("a\0b", b"", hlc=1, seen=0, wall_ms=1)
    assert node.empty
    node.write("k" * 256, bytes(16_384), hlc=1, seen=0, wall_ms=1)


def write_until_refused(node: OwnedRegisters, keys: Iterable[str], size: int, hlc: int) -> int:
    """Write these keys until one is refused because the document is full; return how many were written."""
    for number, key in enumerate(keys):
        try:
            node.write(key, bytes(size), hlc=hlc + number, seen=0, wall_ms=1)
        except StateError as error:
            if error.reason != "full":
                raise
            return number
    raise AssertionError("it is never full")


def fill(node: OwnedRegisters, size: int) -> int:
    return write_until_refused(node, (f"k{number}" for number in range(5_000)), size, 1)


@pytest.mark.parametrize("size", [0, 150, 16_000])
def test_a_full_document_takes_removals_and_new_values_but_no_new_keys(size: int) -> None:
    node = registers(options=StateOptions())
    count = fill(node, size)
    before = node.digest
    with pytest.raises(StateError):
        node.write("new", bytes(size), hlc=9_999, seen=0, wall_ms=1)
    assert node.digest == before
    node.write("k0", bytes(size + 9), hlc=10_000, seen=1, wall_ms=1)
    node.write("k1", None, hlc=10_001, seen=2, wall_ms=1)
    assert node.size_bytes <= StateOptions().document_bytes_max * 9 / 8
    assert count < 262_144 / 176


def test_the_reserve_has_an_end_too() -> None:
    node = registers(options=StateOptions())
    count = fill(node, 150)
    keys = [f"k{number}" for number in range(count)]
    assert 0 < write_until_refused(node, keys, 600, 10_000) < count
    assert node.size_bytes < 300_000
    # What becomes smaller is always taken.
    node.write(keys[-1], b"", hlc=20_000, seen=0, wall_ms=1)


# ── Removals and logs ────────────────────────────────────────────────────────


def test_a_removal_is_forgotten_after_a_week_and_not_before() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world["a"].write("x", None)
    world.settle()
    world.now_ms += 7 * DAY_MS - 300_000
    world.settle()
    assert world["b"].registers.keys() == ["x"]
    world.now_ms += 300_000
    world.settle()
    assert [node.registers.empty for node in world.up] == [True, True]


def test_a_removal_stays_while_somebody_has_a_value() -> None:
    world = DocumentWorld(3)
    world["b"].write("x", b"1")
    world.deliver_all()
    world["b"].up = False  # and never deletes its entry
    world["a"].write("x", None)
    world.now_ms += 8 * DAY_MS
    world.settle()
    assert world["c"].values() == {}
    assert len(world["c"].registers._holding.cells.slots("x")) == 2


def test_a_removal_stays_while_an_earlier_value_lies_below_it() -> None:
    world = DocumentWorld(2)
    world["b"].write("ID/api", b"1")
    world.now_ms += 10
    world["a"].write("ID", None)
    world["a"].write("OTHER", None)
    world.now_ms += 8 * DAY_MS
    world.settle()
    assert world["b"].registers.keys() == ["ID", "ID/api"]
    world["b"].retire("ID/api")
    world.now_ms += 3_600_000
    world.settle()
    assert world["b"].registers.keys() == []


def test_an_own_entry_is_taken_away_without_a_trace() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world.deliver_all()
    assert world["b"].registers.retire("x") is None
    world["a"].retire("x")
    world.deliver_all()
    assert [node.registers.empty for node in world.up] == [True, True]


def test_what_one_writes_is_not_reported_as_heard_later() -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world["a"].retire("x")
    world["b"].write("y", b"1")
    said = world.letters[-1].written
    heard = world["a"].registers.hear(said.update, said.client, said.upto, said.epoch)
    assert heard.changed == ("y",)


def test_a_winner_is_found_in_a_dictionary_however_many_owners_there_are() -> None:
    world = DocumentWorld(12, options=replace(SMALL, epoch_deletions=1_000))
    for node in world.up:
        node.write("x", node.name.encode())
    world.deliver_all()
    holding = world["a"].registers._holding
    assert len(holding.cells.slots("x")) == 12
    cell = holding.cells._cells["x"]
    assert not isinstance(cell, Slot)
    first = world["a"].registers.winner("x", world["a"].wall_ms)
    ranked = cell.ranked
    assert world["a"].registers.winner("x", world["a"].wall_ms) is first
    assert cell.ranked is ranked
    assert len(world["a"].registers.conflicts("x", world["a"].wall_ms)) == 11
    entry = first.entry if first is not None else Entry(0, 0, 0, None)
    assert entry.value == b"l"
