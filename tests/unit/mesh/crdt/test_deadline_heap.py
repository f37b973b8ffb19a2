import random

from smg_mesh.crdt.deadline_heap import Deadlines


def drained(deadlines: Deadlines[str, int]) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    while (first := deadlines.first()) is not None:
        found.append(first)
        deadlines.forget(first[1])
    return found


def test_nothing_is_due_where_nothing_is() -> None:
    assert Deadlines[str, int]().first() is None


def test_keys_come_due_in_order_wherever_they_were_put_before() -> None:
    deadlines = Deadlines[str, int]()
    deadlines.put("a", 5)
    deadlines.put("b", 3)
    deadlines.put("c", 4)
    deadlines.put("b", 9)
    deadlines.put("a", 2)
    deadlines.put("c", 9)
    assert drained(deadlines) == [(2, "a"), (9, "b"), (9, "c")]


def test_what_is_forgotten_is_never_due_and_may_come_again() -> None:
    deadlines = Deadlines[str, int]()
    deadlines.put("a", 1)
    deadlines.put("b", 2)
    deadlines.forget("a")
    deadlines.forget("nobody")
    assert deadlines.first() == (2, "b")
    deadlines.put("a", 1)
    deadlines.put("a", 3)
    assert drained(deadlines) == [(2, "b"), (3, "a")]


def test_it_agrees_with_sorting_whatever_happens() -> None:
    rng = random.Random(4)
    deadlines = Deadlines[str, int]()
    plain: dict[str, int] = {}
    for _ in range(5_000):
        key = f"k{rng.randrange(40)}"
        if rng.random() < 0.2:
            deadlines.forget(key)
            plain.pop(key, None)
        else:
            due = rng.randrange(1_000)
            deadlines.put(key, due)
            plain[key] = due
        expected = min(((due, key) for key, due in plain.items()), default=None)
        assert deadlines.first() == expected
        assert len(deadlines) == len(plain)
    assert drained(deadlines) == sorted((due, key) for key, due in plain.items())


def test_a_million_refreshes_of_ten_keys_take_the_places_of_ten() -> None:
    deadlines = Deadlines[str, int]()
    for turn in range(100_000):
        deadlines.put(f"k{turn % 10}", turn)
        deadlines.put(f"k{turn % 10}", turn if turn % 3 else -turn)
        if turn % 7 == 0:
            deadlines.forget(f"k{turn % 10}")
        assert deadlines.places <= 2 * len(deadlines) + 65
