from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from smg_node.routing.kv_index.holder_sets import HolderSets
from smg_node.routing.kv_index.prefix_index import PrefixIndex


@given(
    held=st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc")), max_size=60),
    gone=st.sets(st.sampled_from("abc")),
    steps=st.lists(st.integers(1, 20), min_size=1, max_size=40),
)
def test_a_sweep_drops_the_same_whether_it_looks_at_sets_or_at_every_entry(
    held: list[tuple[int, str]], gone: set[str], steps: list[int]
) -> None:
    class Plain(HolderSets):
        def alive(self, values: Iterable[int]) -> bool:
            return False

    quick, plain = PrefixIndex(), PrefixIndex()
    plain._sets = Plain(plain._holders, 65_536)
    for index in (quick, plain):
        for block, worker in held:
            index.assume(worker, [block], 0.0)
        for worker in sorted(gone):
            index.forget(worker)
    for places in steps:
        for index in (quick, plain):
            index.sweep(places)
        assert list(quick._table.items()) == list(plain._table.items())
        assert quick._sets.masks == plain._sets.masks
        assert len(quick._sets) == len(plain._sets)
