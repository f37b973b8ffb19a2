from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest

from support.tools.compiled_forms import form, twins

Make = Callable[..., Any]


@pytest.fixture(params=twins("native.block_table"), ids=form)
def make(request: pytest.FixtureRequest) -> Make:
    module: ModuleType = request.param
    made: Make = module.BlockTable
    return made


def test_an_empty_table_has_nothing_and_its_hand_is_at_the_end(make: Make) -> None:
    table = make()
    assert len(table) == 0
    assert table.get(5) == 0
    assert table.look([1, 2]) == [0, 0]
    assert table.turn(1000, lambda one, value: 0)
    assert table.items() == []


def test_values_are_given_and_changed(make: Make) -> None:
    table = make()
    table.add([1, 65, 129], 4)  # one chain
    table.put([65], 6)
    assert table.look([129, 65, 1, 193]) == [4, 6, 4, 0]
    assert sorted(table.items()) == [(1, 4), (65, 6), (129, 4)]
    assert sorted(table.having({4, 9})) == [1, 129]
    assert len(table) == 3


def test_hashes_and_values_may_be_as_large_as_they_can(make: Make) -> None:
    table = make()
    table.add([0, 2**64 - 1, 2**60], 2**32 - 1)
    assert table.look([2**60, 2**64 - 1, 0, 1]) == [2**32 - 1] * 3 + [0]
    for wrong in (-1, 2**64):
        with pytest.raises((OverflowError, ValueError)):
            table.add([wrong], 2)
    assert len(table) == 3


def test_only_what_is_there_gets_another_value(make: Make) -> None:
    table = make()
    table.add([1], 2)
    with pytest.raises(AssertionError):
        table.put([65], 4)
    assert table.items() == [(1, 2)]


def test_the_hand_changes_keeps_and_drops_what_it_is_told(make: Make) -> None:
    table = make()
    table.add(list(range(10)), 2)

    def judge(one: int, value: int) -> int:
        return 0 if one % 2 else 8 if one % 4 else value

    while not table.turn(3, judge):
        pass
    assert sorted(table.items()) == [(0, 2), (2, 8), (4, 2), (6, 8), (8, 2)]
    assert table.look([1, 3]) == [0, 0]


def test_the_hand_comes_by_everything_before_it_begins_again(make: Make) -> None:
    table = make()
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


def test_a_judge_that_fails_leaves_the_table_as_it_was(make: Make) -> None:
    table = make()
    table.add([1, 2, 3], 2)

    def judge(one: int, value: int) -> int:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        table.turn(64, judge)
    assert table.look([1, 2, 3]) == [2, 2, 2]
    assert len(table) == 3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [40, 600])
def test_a_table_is_what_a_dict_is_under_any_history(make: Make, seed: int, most: int) -> None:
    rng, naive = Random(seed), dict[int, int]()
    table = make()
    doomed: set[int] = set()

    def judge(one: int, value: int) -> int:
        assert naive[one] == value
        if one in doomed:
            del naive[one]
            return 0
        return value

    for _ in range(1500):
        # Few homes, so that chains are long.
        some = [rng.choice((62, 63, 0)) + 64 * rng.randrange(most) for _ in range(rng.randrange(9))]
        some = list(dict.fromkeys(some))
        value = rng.randrange(1, 99)
        there = [one for one in some if one in naive]
        new = [one for one in some if one not in naive]
        table.put(there, value)
        naive.update(dict.fromkeys(there, value))
        if len(naive) < most:
            table.add(new, value)
            naive.update(dict.fromkeys(new, value))
        doomed = {one for one in naive if rng.random() < 0.1}
        met, places = table.ahead(30), rng.randrange(40)
        assert met <= set(naive.values())
        if rng.random() < 0.3:
            table.skip(places)
        else:
            table.turn(places, judge)
        assert len(table) == len(naive)
        known = sorted(naive)
        assert table.look([*known, 61]) == [*(naive[one] for one in known), 0]
        assert [table.get(one) for one in some] == [naive.get(one, 0) for one in some]
    assert sorted(table.items()) == sorted(naive.items())
    assert sorted(table.having({3, 50})) == sorted(
        one for one, value in naive.items() if value in (3, 50)
    )


def test_all_is_there_in_every_moment_while_it_grows(make: Make) -> None:
    table, known = make(), list[int]()
    rng = Random(3)
    while len(known) < 30_000:
        new = [rng.getrandbits(64) for _ in range(7)]
        table.add(new, 2 * len(known) + 2)
        known += new
        assert table.look(new) == [2 * len(known) - 12] * 7
        one = rng.choice(known)
        value = table.get(one)
        table.put([one], value | 1)
        assert table.get(one) == value | 1
    assert len(table) == len(known)
    assert all(table.look(known))
    assert [one for one, _ in table.items()] == known
    # 16 a cell and 4 a head, of what is in use.
    assert table.mapped_bytes == 20 * len(known)
    assert make().mapped_bytes == 0


def test_what_is_there_is_found_however_much_was_dropped_and_added_again(make: Make) -> None:
    table, rng, dropped = make(), Random(1), list[int]()

    def judge(one: int, value: int) -> int:
        if one & 64:
            dropped.append(one)
            return 0
        return value

    table.add([rng.getrandbits(60) for _ in range(20_000)], 2)
    for _ in range(4):
        while not table.turn(500, judge):
            pass
        assert table.look(dropped) == [0] * len(dropped)
        table.add([rng.getrandbits(60) | 64 for _ in range(10_000)], 2)
    assert 19_000 < len(table) < 21_000
    assert table.look([one for one, _ in table.items()]) == [2] * len(table)


def test_more_than_there_is_room_for_at_once_is_taken(make: Make) -> None:
    table = make()
    table.add(range(10_000), 4)
    table.add(range(10_000, 50_000), 6)
    assert len(table) == 50_000
    assert table.look([0, 9_999, 10_000, 49_999, 50_000]) == [4, 4, 6, 6, 0]


def test_to_skip_is_to_turn_where_all_stays_as_it_is(make: Make) -> None:
    rng, skipped, turned = Random(5), make(), make()
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
