"""Who probes which worker: the same answer everywhere, and little moves."""

from collections import Counter
from itertools import permutations

import pytest

from smg_mesh.state.prober_selection import probers

WORKERS = [f"w-{number}" for number in range(400)]
TEN = [(f"n{number}", "") for number in range(10)]


def test_up_to_three_nodes_all_look() -> None:
    for count in range(4):
        nodes = TEN[:count]
        for worker in WORKERS[:20]:
            assert sorted(probers(worker, nodes)) == sorted(name for name, _ in nodes)


def test_of_more_nodes_two_look() -> None:
    for worker in WORKERS:
        found = probers(worker, TEN)
        assert len(set(found)) == 2


@pytest.mark.parametrize(("count", "all_up_to", "expected"), [(1, 1, 1), (3, 3, 3), (4, 9, 4)])
def test_the_number_can_be_chosen(count: int, all_up_to: int, expected: int) -> None:
    assert len(probers("w-1", TEN, count=count, all_up_to=all_up_to)) == expected


def test_there_are_never_more_than_there_are_nodes() -> None:
    assert len(probers("w-1", TEN[:4], count=9)) == 4


def test_the_order_in_which_nodes_are_named_does_not_matter() -> None:
    for worker in WORKERS[:20]:
        expected = probers(worker, TEN[:5])
        for order in permutations(TEN[:5]):
            assert probers(worker, order) == expected


def test_it_is_the_same_in_every_process_and_version() -> None:
    assert probers("w-1", TEN) == ("n4", "n1")
    assert probers("w-2", TEN) == ("n7", "n3")


def test_when_a_node_leaves_only_its_workers_move() -> None:
    for leaving, _ in TEN:
        rest = [node for node in TEN if node[0] != leaving]
        for worker in WORKERS:
            before, after = probers(worker, TEN), probers(worker, rest)
            if leaving in before:
                stayed = [name for name in before if name != leaving]
                assert [name for name in after if name in before] == stayed
            else:
                assert after == before


def test_when_a_node_comes_workers_move_only_to_it() -> None:
    for worker in WORKERS:
        before, after = probers(worker, TEN[:9]), probers(worker, TEN)
        assert after == before or "n9" in after
        assert set(after) - set(before) <= {"n9"}


def test_work_is_shared_about_evenly() -> None:
    share = Counter(name for worker in WORKERS for name in probers(worker, TEN))
    mean = 2 * len(WORKERS) / len(TEN)
    assert all(0.6 * mean < share[name] < 1.5 * mean for name, _ in TEN)


def test_nodes_of_the_workers_zone_come_first() -> None:
    nodes = [(f"n{number}", "xyz"[number % 3]) for number in range(12)]
    for worker in WORKERS[:100]:
        for zone in "xyz":
            mine = {name for name, its in nodes if its == zone}
            assert set(probers(worker, nodes, zone=zone)) <= mine
        assert probers(worker, nodes, zone="x") == probers(
            worker, [node for node in nodes if node[1] == "x"], zone="x"
        )


def test_a_zone_with_too_few_nodes_gets_others() -> None:
    nodes = [("near", "x"), *((f"far{number}", "y") for number in range(5))]
    for worker in WORKERS[:50]:
        first, second = probers(worker, nodes, zone="x")
        assert first == "near"
        assert second.startswith("far")


def test_a_zone_without_nodes_is_like_none() -> None:
    nodes = [(f"n{number}", "x") for number in range(6)]
    for worker in WORKERS[:50]:
        assert probers(worker, nodes, zone="nowhere") == probers(worker, nodes)


def test_a_leaving_node_moves_only_its_workers_with_zones_too() -> None:
    nodes = [(f"n{number}", "xy"[number % 2]) for number in range(10)]
    rest = nodes[1:]
    for worker in WORKERS:
        for zone in "xy":
            before = probers(worker, nodes, zone=zone)
            if "n0" not in before:
                assert probers(worker, rest, zone=zone) == before


def test_nobody_looks_where_there_is_nobody() -> None:
    assert probers("w-1", []) == ()
