import random

import pytest

from smg_mesh.state.workers.shared_load import (
    REQUESTS_MAX,
    TOKENS_MAX,
    Load,
    LoadView,
    decode_loads,
    encode_loads,
)
from support.state.register_world import RegisterWorld, Rumor

WORKERS = tuple(f"w-{number:012x}" for number in range(200))


class Cluster:
    """Nodes with a load view each."""

    def __init__(self, *names: str) -> None:
        self.world = RegisterWorld(*names)
        self.views = {name: LoadView(self.world[name].bound, name) for name in names}
        self.open: dict[str, dict[str, Load]] = {name: {} for name in names}

    def __getitem__(self, name: str) -> LoadView:
        return self.views[name]

    def pass_time(self, span_ms: int, *, step_ms: int = 50) -> None:
        """Let time pass; every node says what is due."""
        for _ in range(0, span_ms, step_ms):
            self.world.pass_time(step_ms, step_ms=step_ms)
            for name in self.world.nodes:
                self.views[name].refresh()

    def publish(self, name: str, loads: dict[str, Load]) -> None:
        self.open[name] = loads
        self.views[name].publish(loads)

    def expected(self, of: str) -> dict[str, Load]:
        """Return what `of` should see."""
        sums: dict[str, Load] = {}
        for name, loads in self.open.items():
            if name != of and name in self.world.nodes:
                for worker_id, (requests, tokens) in loads.items():
                    before = sums.get(worker_id, (0, 0))
                    sums[worker_id] = (before[0] + requests, before[1] + tokens)
        return {worker_id: load for worker_id, load in sums.items() if any(load)}

    def disagreements(self) -> list[str]:
        return [
            name
            for name in self.world.nodes
            if dict(self.views[name].others()) != self.expected(name)
        ]


def test_each_node_sees_the_sum_of_the_others() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.publish("a", {"w1": (1, 100), "w2": (2, 200)})
    cluster.publish("b", {"w2": (3, 300)})
    assert dict(cluster["a"].others()) == {"w2": (3, 300)}
    assert dict(cluster["b"].others()) == {"w1": (1, 100), "w2": (2, 200)}
    assert cluster["c"].other("w2") == (5, 500)
    assert cluster["c"].other("w3") == (0, 0)
    assert cluster.disagreements() == []


def test_what_others_return_is_kept_up_to_date_and_cannot_be_written() -> None:
    cluster = Cluster("a", "b")
    others = cluster["b"].others()
    cluster.publish("a", {"w1": (1, 1)})
    assert others["w1"] == (1, 1)
    with pytest.raises(TypeError):
        others["w1"] = (2, 2)  # type: ignore[index]  # what must not be possible


def test_it_is_said_at_most_four_times_a_second_and_the_last_numbers_count() -> None:
    cluster = Cluster("a", "b")
    for number in range(400):
        cluster.publish("a", {"w1": (number, number)})
        cluster.pass_time(10, step_ms=10)
    assert 16 <= len(cluster.world["a"].said) <= 17
    cluster.pass_time(250)
    assert cluster["b"].other("w1") == (399, 399)


def test_the_first_change_after_a_quiet_time_is_said_at_once() -> None:
    cluster = Cluster("a", "b")
    cluster.publish("a", {"w1": (1, 1)})
    cluster.pass_time(700)
    cluster.publish("a", {"w1": (2, 2)})
    assert cluster["b"].other("w1") == (2, 2)


def test_without_a_change_it_is_said_once_a_second_while_something_is_open() -> None:
    cluster = Cluster("a", "b")
    cluster.publish("a", {"w1": (1, 1)})
    for _ in range(100):
        cluster.pass_time(100)
        cluster.publish("a", {"w1": (1, 1)})
    assert 10 <= len(cluster.world["a"].said) <= 11
    assert cluster["b"].other("w1") == (1, 1)


def test_a_final_zero_is_said_once_and_then_nothing() -> None:
    cluster = Cluster("a", "b")
    cluster.publish("a", {"w1": (1, 1)})
    cluster.pass_time(300)
    cluster.publish("a", {"w1": (0, 0)})
    cluster.pass_time(250)
    assert dict(cluster["b"].others()) == {}
    spoken = len(cluster.world["a"].said)
    cluster.pass_time(20_000)
    assert len(cluster.world["a"].said) == spoken
    assert cluster["a"].refresh() is None
    cluster.publish("a", {})
    assert len(cluster.world["a"].said) == spoken


def test_an_idle_node_asks_not_to_be_called() -> None:
    cluster = Cluster("a", "b")
    assert cluster["a"].publish({}) is None
    assert cluster["a"].publish({"w1": (0, 0)}) is None
    assert cluster.world.said() == []
    due_ms = cluster["a"].publish({"w1": (1, 0)})
    assert due_ms == cluster.world.now_ms() + 1_000
    assert due_ms in cluster.world["a"].wakes


def test_sets_of_workers_grow_and_shrink() -> None:
    rng = random.Random(7)
    cluster = Cluster("a", "b", "c")
    for _ in range(60):
        name = rng.choice("abc")
        count = rng.choice((0, 1, 5, 60, 200))
        chosen = rng.sample(WORKERS, count)
        cluster.publish(
            name, {worker_id: (rng.randrange(40), rng.randrange(90_000)) for worker_id in chosen}
        )
        cluster.pass_time(rng.choice((50, 300)))
    cluster.pass_time(8_000)
    assert cluster.disagreements() == []
    for name in "abc":
        cluster.publish(name, {})
    cluster.pass_time(8_000)
    assert all(dict(view.others()) == {} for view in cluster.views.values())
    assert all(len(node.registers) == 0 for node in cluster.world.nodes.values())


def test_lost_repeated_and_late_rumors_leave_no_wrong_sum_behind() -> None:
    rng = random.Random(11)
    cluster = Cluster("a", "b", "c")
    late: list[tuple[Rumor, str]] = []

    def deliver(rumor: Rumor, to: str) -> bool:
        if rng.random() < 0.5:
            late.append((rumor, to))
        return rng.random() < 0.5

    cluster.world.deliver = deliver
    for _ in range(300):
        name = rng.choice("abc")
        chosen = rng.sample(WORKERS, rng.choice((0, 3, 70)))
        cluster.publish(name, {worker_id: (rng.randrange(9), 10) for worker_id in chosen})
        cluster.pass_time(50)
        for _ in range(min(4, len(late))):
            rumor, to = late.pop(rng.randrange(len(late)))
            cluster.world[to].hear(rumor)
    cluster.world.deliver = lambda rumor, to: True
    cluster.pass_time(6_000)
    assert cluster.disagreements() == []


def test_a_dead_node_has_nothing_open_a_few_seconds_later() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.publish("a", {"w1": (1, 1)})
    cluster.publish("b", {"w1": (1, 1)})
    cluster.world.kill("a")
    cluster.pass_time(4_200)
    assert cluster["c"].other("w1") == (1, 1)


def test_a_node_that_comes_back_counts_once() -> None:
    cluster = Cluster("a", "b")
    cluster.publish("a", {"w1": (1, 10)})
    cluster.pass_time(500)
    cluster.world.begin("a", boot=2000)
    cluster.views["a"] = LoadView(cluster.world["a"].bound, "a")
    assert dict(cluster["b"].others()) == {}
    cluster.publish("a", {"w1": (3, 30)})
    assert cluster["b"].other("w1") == (3, 30)


def test_a_view_made_late_sees_what_was_said_before() -> None:
    cluster = Cluster("a", "b")
    cluster.publish("a", {"w1": (1, 10)})
    assert LoadView(cluster.world["b"].bound, "b").other("w1") == (1, 10)


def test_a_worker_that_moved_to_another_register_counts_once_whatever_arrives_first() -> None:
    cluster = Cluster("a", "b")
    loads = dict.fromkeys(WORKERS[:80], (1, 10))
    cluster.publish("a", loads)
    cluster.pass_time(500)
    held_back: list[Rumor] = []

    def hold_back(rumor: Rumor, to: str) -> bool:
        held_back.append(rumor)
        return False

    cluster.world.deliver = hold_back
    mover = WORKERS[70]
    without = {
        worker_id: load for worker_id, load in loads.items() if worker_id not in (mover, WORKERS[0])
    }
    cluster.publish("a", without)
    cluster.pass_time(300)
    cluster.publish("a", {**without, mover: (2, 20)})
    cluster.pass_time(300)
    for rumor in reversed(held_back):
        cluster.world["b"].hear(rumor)
        assert cluster["b"].other(mover) in ((1, 10), (2, 20))
    assert cluster["b"].other(mover) == (2, 20)
    assert dict(cluster["b"].others()) == {**without, mover: (2, 20)}


def test_watchers_hear_which_sums_changed() -> None:
    cluster = Cluster("a", "b")
    heard: list[list[str]] = []
    cluster["b"].watch(lambda worker_ids: heard.append(list(worker_ids)))
    cluster.publish("a", {"w2": (1, 1), "w1": (1, 1)})
    cluster.pass_time(300)
    cluster.publish("a", {"w2": (1, 1), "w1": (2, 1)})
    cluster.pass_time(1_200)
    cluster.world.kill("a")
    cluster.pass_time(5_000)
    assert heard == [["w1", "w2"], ["w1"], ["w1", "w2"]]


def test_one_register_holds_more_than_thirty_workers_at_their_largest() -> None:
    cluster = Cluster("a", "b")
    largest = (REQUESTS_MAX + 5, TOKENS_MAX + 5)
    cluster.publish("a", dict.fromkeys(WORKERS[:33], largest))
    (rumor,) = cluster.world["a"].said
    assert len(rumor.content) <= 512
    assert cluster["b"].other(WORKERS[0]) == (REQUESTS_MAX, TOKENS_MAX)


def test_other_names_of_workers_travel_too_except_such_as_none_has() -> None:
    cluster = Cluster("a", "b")
    names = ["w1", "ü" * 64, "w-ABCDEF012345", "w-0123456789ab"]
    loads: dict[str, Load] = {name: (number + 1, -5) for number, name in enumerate(names)}
    cluster.publish("a", {**loads, "": (1, 1), "x" * 65: (1, 1)})
    assert dict(cluster["b"].others()) == {
        name: (requests, 0) for name, (requests, _) in loads.items()
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93" * 400,
        encode_loads({"w1": (1, 2)})[:-1],
        b"\x93\xc4\x05abcde\x90\x90",
        b"\x93\xc4\x00\x91\xa0\x92\x01\x02",
        b"\x93\xc4\x00\x91\xa1x\x91\x01",
        b"\x93\xc4\x00\x91\xa1x\x92\x01\xff",
        b"\x93\xc4\x00\x91\xa1\xff\x92\x01\x01",
    ],
)
def test_a_register_without_sense_says_nothing(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_loads(content)
    cluster = Cluster("a", "b")
    cluster.publish("a", {"w1": (1, 1)})
    cluster.pass_time(200)
    cluster.world["a"].bound.set("l", "0", content, ttl_ms=4_000)
    assert dict(cluster["b"].others()) == {}
    assert cluster["b"].garbage == 1


def test_what_all_nodes_say_together_keeps_to_its_budget() -> None:
    rng = random.Random(3)
    names = [f"n{number}" for number in range(10)]
    cluster = Cluster(*names)

    def run(turns: int) -> None:
        for _ in range(turns):
            for name in names:
                loads = {
                    worker_id: (rng.randrange(9), rng.randrange(9_000))
                    for worker_id in WORKERS[:100]
                }
                cluster.publish(name, loads)
            cluster.pass_time(250, step_ms=250)

    run(12)
    for node in cluster.world.nodes.values():
        node.said.clear()
    run(40)
    bytes_per_s = sum(rumor.size_bytes for rumor in cluster.world.said()) / 10
    assert 2_500 < bytes_per_s < 5_500
    # What was said is good for as long as it takes to say it again.
    for name in names:
        assert len(cluster[name].others()) == 100
