from hypothesis import given
from hypothesis import strategies as st

from smg_storage.memory.sorted_list import Ordered


def test_nothing_is_in_an_empty_one() -> None:
    ordered = Ordered[int]()
    assert (len(ordered), 1 in ordered) == (0, False)
    assert list(ordered.ascending()) == list(ordered.descending(3)) == []
    ordered.discard(1)


@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 20))), probe=st.integers(-1, 21))
def test_it_is_a_set_that_is_sorted(steps: list[tuple[bool, int]], probe: int) -> None:
    ordered = Ordered[int]()
    known: set[int] = set()
    for added, entry in steps:
        if added:
            ordered.add(entry)
            known.add(entry)
        else:
            ordered.discard(entry)
            known.discard(entry)
    expected = sorted(known)
    assert len(ordered) == len(expected)
    assert list(ordered.ascending()) == expected
    assert list(ordered.descending()) == expected[::-1]
    assert list(ordered.ascending(probe)) == [entry for entry in expected if entry > probe]
    assert list(ordered.descending(probe)) == [entry for entry in expected[::-1] if entry < probe]
    assert (probe in ordered) is (probe in known)
