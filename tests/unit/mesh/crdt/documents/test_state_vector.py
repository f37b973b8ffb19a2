import pytest

from smg_mesh.crdt.documents.document import Document
from smg_mesh.crdt.documents.state_vector import VectorError, beginning, read_vector


def test_a_vector_says_how_far_each_writer_has_come() -> None:
    one, other = Document(2**53 - 1), Document(7)
    change = one.change("a", {"x": b"1", "y": b"2"})
    assert change is not None
    other.change("b", {"x": b"1"})
    other.merge(change.update)
    assert read_vector(other.summary()) == {2**53 - 1: 2, 7: 1}


def test_an_update_says_where_it_begins() -> None:
    document = Document(77)
    first = document.change("a", {"x": b"1"})
    second = document.change("a", {"x": b"2"})
    third = document.change("a", {}, [document.mirror.slots()[0]])
    assert first is not None
    assert second is not None
    assert third is not None
    assert beginning(first.update) == (77, 0)
    assert beginning(second.update) == (77, 1)
    assert beginning(third.update) == (0, 0)
    assert (first.upto, second.upto, third.upto) == (1, 2, 2)


def test_an_update_of_several_writers_begins_nowhere() -> None:
    one, other = Document(1), Document(2)
    one.change("a", {"x": b"1"})
    other.change("b", {"x": b"1"})
    other.merge(one.dump())
    assert beginning(other.dump()) is None


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\x01", b"\x01\x80", b"\x02\x01\x01", b"\x00\x00", b"\xff" * 40]
)
def test_other_bytes_are_no_vector(data: bytes) -> None:
    with pytest.raises(VectorError):
        read_vector(data)


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\x01", b"\x01\x01", b"\x01\x01\x80", b"\xff" * 40]
)
def test_other_bytes_begin_nowhere(data: bytes) -> None:
    with pytest.raises(VectorError):
        beginning(data)
