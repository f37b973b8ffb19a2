"""Hints go into the index in order, and never much at once."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from smg_node.cluster.prefix_hints.hint_queue import SLICE, WAITING_MAX, HintQueue, What


class Index:
    """Writes down what it is told, and knows what follows from it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, int]] = []
        self.most = 0
        self.held: dict[str, set[int]] = {}

    def _note(self, what: str, worker: str, hashes: Sequence[int]) -> None:
        self.most = max(self.most, len(hashes))
        self.told.append((what, worker, len(hashes)))

    def tell(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        assert now_s == 5.0
        self._note("tell", worker, hashes)
        self.held.setdefault(worker, set()).update(hashes)

    def untell(self, worker: str, hashes: Sequence[int]) -> None:
        self._note("untell", worker, hashes)
        self.held.setdefault(worker, set()).difference_update(hashes)

    def untell_all(self, worker: str) -> None:
        self._note("untell_all", worker, ())
        self.held.pop(worker, None)

    def doubt_told(self, worker: str, now_s: float) -> None:
        assert now_s == 5.0
        self._note("doubt_told", worker, ())
        self.held.pop(worker, None)

    def assume(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        assert now_s == 5.0
        self._note("assume", worker, hashes)


def made(*gone: str) -> tuple[Index, HintQueue]:
    index = Index()
    queue = HintQueue(index, known=lambda worker: worker not in gone, monotonic_s=lambda: 5.0)
    return index, queue


def test_a_few_go_in_at_once() -> None:
    index, queue = made()
    queue.put("tell", "w", [1, 2])
    queue.put("untell", "w", [1])
    queue.put("assume", "w", [9])
    assert index.told == [("tell", "w", 2), ("untell", "w", 1), ("assume", "w", 1)]
    assert (queue.empty, queue.waiting, queue.work()) == (True, 0, False)


def test_much_goes_in_by_slices_and_what_comes_after_waits_behind_it() -> None:
    index, queue = made()
    queue.put("tell", "w", range(3 * SLICE))
    queue.put("untell", "w", [0])
    queue.put("tell", "v", [1])
    assert (index.told, queue.waiting) == ([], 3 * SLICE + 2)
    turns = 1
    while queue.work():
        turns += 1
    assert turns == 4
    assert index.most == SLICE
    assert index.held == {"w": set(range(1, 3 * SLICE)), "v": {1}}
    assert (queue.waiting, queue.empty) == (0, True)


def test_what_is_too_much_is_dropped_and_counted() -> None:
    _, queue = made()
    queue.put("tell", "w", range(WAITING_MAX))
    queue.put("tell", "w", [1, 2, 3])
    assert (queue.waiting, queue.dropped) == (WAITING_MAX, 3)


def test_hints_of_workers_that_went_meanwhile_are_dropped_but_their_end_is_not() -> None:
    index, queue = made("w")
    queue.put("tell", "w", [1])
    queue.put("untell", "w", [1])
    queue.put("assume", "w", [1])
    queue.put("untell_all", "w")
    assert (index.told, queue.dropped) == ([("untell_all", "w", 0)], 3)


def test_many_small_ones_are_several_turns_as_well() -> None:
    _, queue = made()
    queue.put("tell", "w", range(SLICE + 1))
    for _ in range(1_000):
        queue.put("untell_all", "w")
    turns = 0
    while queue.work():
        turns += 1
    assert turns >= 8


step = st.tuples(
    st.sampled_from(["tell", "untell", "untell_all"]),
    st.sampled_from(["v", "w"]),
    st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)),
    st.booleans(),
)


@given(st.lists(step, max_size=12))
def test_in_whatever_slices_the_end_is_as_if_all_had_been_done_at_once(
    steps: list[tuple[What, str, tuple[int, int], bool]],
) -> None:
    index, queue = made()
    plain = Index()
    for what, worker, (low, count), works in steps:
        hashes = () if what == "untell_all" else range(low, low + count)
        queue.put(what, worker, hashes)
        if what == "tell":
            plain.tell(worker, hashes, 5.0)
        elif what == "untell":
            plain.untell(worker, hashes)
        else:
            plain.untell_all(worker)
        if works:
            queue.work()
    while queue.work():
        pass
    assert {w: h for w, h in index.held.items() if h} == {w: h for w, h in plain.held.items() if h}
