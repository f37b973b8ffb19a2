from collections.abc import Callable
from multiprocessing.shared_memory import SharedMemory
from random import Random

import pytest

from smg_node.routing.kv.table import PLACE_BYTES, DictTable, FlatTable, Table

FORMS: dict[str, Callable[[], Table]] = {
    "dict": DictTable,
    "flat": lambda: FlatTable(64),
    "buffer": lambda: FlatTable(64, memoryview(bytearray(64 * PLACE_BYTES))),
}


@pytest.fixture(params=FORMS)
def table(request: pytest.FixtureRequest) -> Table:
    return FORMS[request.param]()


def test_an_empty_table_has_nothing_and_its_hand_is_at_the_end(table: Table) -> None:
    assert len(table) == 0
    assert table.get(5) == 0
    assert table.look([1, 2]) == [0, 0]
    assert table.turn(1000, lambda one, value: 0)
    assert list(table.items()) == []


def test_values_are_given_and_changed(table: Table) -> None:
    table.add([1, 65, 129], 4)  # the same place in a flat table
    table.put([65], 6)
    assert table.look([129, 65, 1, 193]) == [4, 6, 4, 0]
    assert sorted(table.items()) == [(1, 4), (65, 6), (129, 4)]
    assert len(table) == 3


def test_the_hand_changes_keeps_and_drops_what_it_is_told(table: Table) -> None:
    table.add(list(range(10)), 2)

    def judge(one: int, value: int) -> int:
        return 0 if one % 2 else 8 if one % 4 else value

    while not table.turn(3, judge):
        pass
    assert sorted(table.items()) == [(0, 2), (2, 8), (4, 2), (6, 8), (8, 2)]
    assert table.look([1, 3]) == [0, 0]


def test_the_hand_comes_by_everything_before_it_begins_again(table: Table) -> None:
    table.add(list(range(20)), 2)
    seen: list[int] = []

    def judge(one: int, value: int) -> int:
        seen.append(one)
        return value

    turns = 1
    while not table.turn(3, judge):
        turns += 1
    assert sorted(seen) == list(range(20))
    assert turns > 5
    table.turn(1000, judge)
    assert len(seen) == 40


def test_a_table_is_what_a_dict_is_under_any_history(table: Table) -> None:
    rng, naive = Random(7), dict[int, int]()
    doomed: set[int] = set()

    def judge(one: int, value: int) -> int:
        assert naive[one] == value
        if one in doomed:
            del naive[one]
            return 0
        return value

    for _ in range(3000):
        # Few homes, so that probing wraps around the end of a flat table.
        one = rng.choice((62, 63, 0)) + 64 * rng.randrange(12)
        if one in naive:
            naive[one] = rng.randrange(2, 99)
            table.put([one], naive[one])
        elif len(naive) < 40:
            naive[one] = rng.randrange(2, 99)
            table.add([one], naive[one])
        doomed = {each for each in naive if rng.random() < 0.2}
        table.turn(rng.randrange(40), judge)
        assert len(table) == len(naive)
        known = sorted(naive)
        assert table.look(known) == [naive[each] for each in known]
    assert sorted(table.items()) == sorted(naive.items())


def test_another_process_reads_a_table_in_shared_memory() -> None:
    memory = SharedMemory(create=True, size=64 * PLACE_BYTES)
    try:
        writer = FlatTable(64, memory.buf)
        writer.add([3, 67, 2**60 - 1], 12)
        other = SharedMemory(memory.name)
        reader = FlatTable(64, other.buf)
        assert len(reader) == 3
        assert reader.look([67, 2**60 - 1, 4]) == [12, 12, 0]
        writer.put([67], 14)
        assert reader.get(67) == 14
        writer.release()
        reader.release()
        other.close()
    finally:
        memory.close()
        memory.unlink()


def test_a_flat_table_keeps_one_place_empty() -> None:
    table = FlatTable(8)
    table.add(list(range(7)), 2)
    with pytest.raises(AssertionError):
        table.add([7], 2)
    assert table.look([15]) == [0]


def test_to_skip_is_to_turn_where_all_stays_as_it_is() -> None:
    for form in FORMS.values():
        rng, skipped, turned = Random(5), form(), form()
        for table in (skipped, turned):
            table.add(list(range(0, 120, 3)), 2)
            table.put([9, 12], 6)
        for _ in range(200):
            places, met = rng.randrange(30), set[int]()

            def judge(one: int, value: int, met: set[int] = met) -> int:
                met.add(value)
                return value

            ahead, ended = skipped.ahead(places), skipped.skip(places)
            assert turned.turn(places, judge) is ended
            assert ahead == met
