import gc
import weakref
from random import Random
from typing import Any

import pycrdt
import pytest

from smg_mesh.crdt.documents.document import Change, Document, DocumentError
from smg_mesh.crdt.entry import Entry, encode_entry


def put(document: Document, owner: str, **values: bytes) -> Change:
    change = document.change(owner, values)
    assert change is not None
    return change


def contents(document: Document) -> dict[str, dict[str, bytes]]:
    return {owner: dict(document.entries(owner)) for owner in document.owners()}


def test_what_one_writes_the_other_holds_as_bytes() -> None:
    one, other = Document(1), Document(2)
    change = put(one, "a", x=b"1", y=b"")
    merged = other.merge(change.update, upto=change.upto)
    assert [(slot.root, slot.name, slot.value) for slot in merged.added] == [
        ("a", "x", b"1"),
        ("a", "y", b""),
    ]
    assert all(type(slot.value) is bytes for slot in merged.added)
    assert other.get("a", "x") == b"1"
    assert other.get("a", "z") is None
    assert other.get("b", "x") is None
    assert other.digest == one.digest != Document(3).digest


def test_to_replace_is_to_delete_and_append_in_one_update() -> None:
    one, other = Document(1), Document(2)
    other.merge(put(one, "a", x=b"1", y=b"2").update)
    change = put(one, "a", x=b"3")
    merged = other.merge(change.update, upto=change.upto)
    assert [slot.value for slot in merged.dropped] == [b"1"]
    assert [slot.value for slot in merged.added] == [b"3"]
    assert contents(other) == {"a": {"y": b"2", "x": b"3"}}
    assert one.deletions == other.deletions == 1


def test_what_is_there_is_not_written_again() -> None:
    document = Document(1)
    put(document, "a", x=b"1")
    assert document.change("a", {"x": b"1"}) is None
    assert document.change("a", {}) is None


def test_entries_can_be_taken_away() -> None:
    one, other = Document(1), Document(2)
    put(one, "a", x=b"1", y=b"2")
    other.merge(one.dump())
    change = one.change("a", {}, [one.mirror.slots()[0]])
    assert change is not None
    other.merge(change.update, upto=change.upto)
    assert contents(one) == contents(other) == {"a": {"y": b"2"}}


def test_an_entry_that_lies_there_twice_counts_in_the_digest_and_goes_with_the_next_write() -> None:
    first_life, second_life = Document(1), Document(2)
    one = put(first_life, "a", x=b"1")
    two = put(second_life, "a", x=b"1")
    both = Document(3)
    both.merge(one.update)
    single = both.digest
    both.merge(two.update)
    assert both.digest != single
    second_life.merge(one.update)
    assert second_life.digest == both.digest
    second_life.change("a", {"x": b"1"})
    assert second_life.digest == single
    both.merge(second_life.dump())
    assert both.digest == single


def test_a_missing_predecessor_is_seen() -> None:
    one, other = Document(1), Document(2)
    updates = [put(one, "a", x=b"%d" % number) for number in range(3)]
    other.merge(updates[0].update, upto=1)
    other.merge(updates[2].update, upto=3)
    assert other.has(1, 1)
    assert not other.has(1, 3)
    other.merge(updates[1].update, upto=2)
    assert other.has(1, 3)
    assert other.digest == one.digest


def test_any_order_and_repetition_gives_the_same() -> None:
    rng = Random(5)
    writers = [Document(client) for client in (11, 12, 13)]
    updates = []
    for number in range(120):
        who = rng.randrange(3)
        name = f"k{rng.randrange(6)}"
        change = writers[who].change(f"n{who}", {name: b"%d" % number})
        assert change is not None
        updates.append(change.update)
    digests = set()
    for _ in range(8):
        rng.shuffle(updates)
        reader = Document(rng.getrandbits(53))
        for update in updates + updates[:40]:
            reader.merge(update)
        digests.add(reader.digest)
        assert reader.deletions == 120 - 18
        assert reader.clients == 3
    assert len(digests) == 1


def test_arrays_nobody_declared_are_found_and_followed() -> None:
    one, other = Document(1), Document(2)
    other.merge(put(one, "a", x=b"1").update, upto=1)
    other.merge(put(one, "a", x=b"2").update, upto=2)
    assert contents(other) == {"a": {"x": b"2"}}


def test_declared_arrays_are_read_with_the_update() -> None:
    one, other = Document(1), Document(2)
    put(one, "a", x=b"1")
    other.declare(["a", "b" * 100])
    other.merge(one.dump())
    assert contents(other) == {"a": {"x": b"1"}}


def test_what_one_lacks_and_nothing_more_is_sent() -> None:
    one, other = Document(1), Document(2)
    put(one, "a", x=b"1" * 500)
    other.merge(one.dump())
    put(one, "a", y=b"2")
    update = one.missing(other.summary())
    assert len(update) < 100
    other.merge(update)
    assert other.digest == one.digest


def test_the_size_is_kept_from_above_and_measured_by_a_dump() -> None:
    document = Document(1)
    rng = Random(2)
    for number in range(500):
        put(document, "a", **{f"k{rng.randrange(20)}": b"%020d" % number})
    assert document.size_bytes >= len(document.dump()) == document.size_bytes
    assert document.mirror.weight == 20 * 176


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 9, b"garbage", b"\x01\x01\x01"])
def test_what_is_no_update_changes_nothing(data: bytes) -> None:
    document = Document(1)
    put(document, "a", x=b"1")
    before = document.dump()
    with pytest.raises(DocumentError) as caught:
        document.merge(data)
    assert caught.value.reason == "corrupt"
    assert not document.broken
    assert document.dump() == before


def foreign() -> "pycrdt.Doc[Any]":
    """What other software, or a newer version, may have put into the same document."""
    doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=99)
    items: pycrdt.Array[Any] = doc.get("a", type=pycrdt.Array)
    items.append(["x", b"1"])
    nested: list[Any] = ["text", 1.5, None, True, {"m": b"1"}, 2**60, ["x"], ["x", "y"], [1, b""]]
    for item in [*nested, ["x", b"1", b"2"], pycrdt.Map({"k": 1}), pycrdt.Text("t")]:
        items.append(item)
    items.append(["y", b"2"])
    words = doc.get("m", type=pycrdt.Map)
    words["k"] = 1
    text = doc.get("t", type=pycrdt.Text)
    text += "hello"
    return doc


def test_what_is_no_entry_is_ignored_and_passed_on() -> None:
    document, other = Document(1), Document(2)
    document.merge(foreign().get_update())
    assert contents(document)["a"] == {"x": b"1", "y": b"2"}
    assert document.mirror.live == 2
    put(document, "a", y=b"3")
    other.merge(document.dump())
    assert contents(other)["a"] == {"x": b"1", "y": b"3"}
    assert other.digest == document.digest


def test_an_array_longer_than_its_mirror_is_not_written_into() -> None:
    document = Document(1)
    put(document, "a", x=b"1")
    document.mirror.rows["a"].items.append(None)
    with pytest.raises(DocumentError) as caught:
        document.change("a", {"x": b"2"})
    assert caught.value.reason == "panic"
    assert document.broken


def test_entries_that_cannot_be_read_are_carried_and_not_shown() -> None:
    document = Document(1)
    put(document, "a", x=b"\xc1", y=encode_entry(Entry(1, 1, 0, b"")))
    assert [slot.entry is None for slot in document.mirror.slots()] == [True, False]


def test_a_document_that_nobody_holds_goes_at_once() -> None:
    document = Document(1)
    put(document, "a", x=b"1")
    gone = weakref.ref(document)
    gc.disable()
    try:
        del document
        assert gone() is None
    finally:
        gc.enable()
