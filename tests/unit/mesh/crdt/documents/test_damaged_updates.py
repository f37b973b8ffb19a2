from random import Random

import pytest

from smg_mesh.crdt.documents.document import DocumentError
from smg_mesh.crdt.documents.owned_registers import OwnedRegisters
from support.state.document_world import SMALL, DocumentWorld


def registers() -> OwnedRegisters:
    return OwnedRegisters("settings/1", "a", 1, options=SMALL, rng=Random(1))


def test_a_library_that_fails_over_an_update_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = DocumentWorld(2)
    world["a"].write("x", b"1")
    world.deliver_all()
    b = world["b"].registers
    broken = b._holding.open()

    class Panic(BaseException):
        pass

    class Poisoned:
        """A document that panics over every update, and otherwise works."""

        def __init__(self, doc: object) -> None:
            self.doc = doc

        def __getattr__(self, name: str) -> object:
            if name == "apply_update":
                raise Panic
            return getattr(self.doc, name)

    monkeypatch.setattr(broken, "_doc", Poisoned(broken._doc))
    world["a"].write("x", b"2")
    world.deliver_all()
    assert world["b"].values() == {"x": b"2"}
    assert b._holding.open() is not broken
    world["b"].write("y", b"3")
    world.settle()
    assert world["a"].values() == {"x": b"2", "y": b"3"}


def test_a_damaged_copy_is_begun_anew_from_the_side_with_the_larger_name() -> None:
    world = DocumentWorld(2)
    world["b"].write("x", b"1")
    world["a"].write("y", b"2")
    world.settle()
    damaged = world["a"].registers._holding
    slot = next(slot for slot in damaged.open().mirror.slots() if slot.key == "x")
    damaged.forget(slot)  # the vector says that it was seen, and it is not there
    damaged.open().mirror.count((), [slot])
    assert world["a"].registers.digest != world["b"].registers.digest
    world.settle()
    assert world["a"].values() == {"x": b"1", "y": b"2"}


def test_a_dump_with_one_bit_changed_is_refused() -> None:
    world = DocumentWorld(1)
    world["a"].write("x", b"1")
    dump = bytearray(world["a"].registers.dump())
    for place in range(0, len(dump), 3):
        dump[place] ^= 4
        fresh = registers()
        with pytest.raises(DocumentError):
            fresh.load(bytes(dump))
        assert fresh.empty
        dump[place] ^= 4
    assert registers().load(bytes(dump)) == ("x",)


def test_an_epoch_out_of_bounds_is_refused_everywhere() -> None:
    node = registers()
    for epoch in (-1, 1 << 48):
        with pytest.raises(DocumentError):
            node.summary(epoch)
        with pytest.raises(DocumentError):
            node.hear(b"\0\0", 1, 1, epoch)
        with pytest.raises(DocumentError):
            node.merge(epoch, b"")
